package api_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"testing"
)

// TestHalfClosedClient: a client that has closed its sending half still waits for
// the response, and its change is made.
func TestHalfClosedClient(t *testing.T) {
	s := start(t)
	const body = `{"name":"Rex","categoryId":7}`
	for i := range 20 {
		conn, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST /v1/pets HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", s.owner, len(body), body)
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != http.StatusCreated {
			t.Errorf("request %d: got %d, want 201", i, res.StatusCode)
		}
		conn.Close()
	}
}
