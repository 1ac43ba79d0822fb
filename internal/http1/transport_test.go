package http1

import (
	"bufio"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"animalstore/internal/testenv"
)

// dial connects to l.
func dial(t testing.TB, l *Server) net.Conn {
	t.Helper()
	return dialAddr(t, l.inner.Addr().String())
}

func dialAddr(t testing.TB, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(testenv.Deadline))
	return c
}

// ending is how a conversation ended.
type ending int

const (
	complete ending = iota
	doubtful        // sending failed: responses may be missing
	cutOff          // receiving failed: responses are missing
)

// talk sends the pieces on c and returns the responses. A client that keeps sending to
// a closed connection can lose responses it hasn't read yet.
func talk(t testing.TB, c net.Conn, pieces []string) (responses string, end ending) {
	t.Helper()
	defer c.Close()
	sent := make(chan error, 1)
	go func() {
		for i, piece := range pieces {
			if i > 0 {
				time.Sleep(time.Millisecond) // so that it is read separately
			}
			if _, err := io.WriteString(c, piece); err != nil {
				sent <- err // the server closed the connection
				return
			}
		}
		sent <- c.(*net.TCPConn).CloseWrite()
	}()
	for br := bufio.NewReaderSize(c, 64<<10); ; {
		text, err := readResponse(br)
		// The system reports a reset only once, perhaps to the sending goroutine. Then
		// this one sees just the end, perhaps in the middle of a response.
		if errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.ErrUnexpectedEOF) {
			return responses, cutOff
		}
		if text != "" {
			responses += text + "\n"
		}
		if err != nil {
			if <-sent != nil {
				end = doubtful
			}
			return responses, end
		}
	}
}
