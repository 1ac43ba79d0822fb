package api_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestStreamSendsPieces: many events are sent with few writes, because each one costs a
// system call here and another at the client.
func TestStreamSendsPieces(t *testing.T) {
	sqliteOnly(t, "it is about the connection")
	s := start(t)
	const pets = 150
	for range pets {
		s.createPet(t, "Rex")
	}
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Minute))
	fmt.Fprintf(conn, "GET /v1/events?type=pet.* HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nAccept: text/event-stream\r\n\r\n", s.owner)
	lines := bufio.NewReader(conn)
	res, err := http.ReadResponse(lines, nil) // leaves the body in lines
	if err != nil || res.StatusCode != 200 {
		t.Fatalf("got %v, %v, want a stream", res, err)
	}
	var chunks []int // how many events each has
	for got := 0; got < pets; {
		size, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.ParseInt(strings.TrimSpace(size), 16, 32)
		if err != nil {
			t.Fatal(err)
		}
		chunk := make([]byte, n+2)
		if _, err := io.ReadFull(lines, chunk); err != nil {
			t.Fatal(err)
		}
		if events := strings.Count(string(chunk), "event: pet.created\n"); events > 0 {
			chunks = append(chunks, events)
			got += events
		}
	}
	if len(chunks) != 1 {
		t.Errorf("got %d events in chunks of %v, want one chunk", pets, chunks)
	}
}
