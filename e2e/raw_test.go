package e2e

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// rawConn is a bare HTTP/1.1 connection: it does nothing on its own; above all
// it never sends a request a second time.
type rawConn struct {
	net.Conn
	r        *bufio.Reader
	answered int // requests answered on it
}

// dial connects to a server. The connection is closed when the test ends.
func dial(t testing.TB, s *server) *rawConn {
	t.Helper()
	c, err := tryDial(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func tryDial(s *server) (*rawConn, error) {
	scheme, addr, _ := strings.Cut(s.url, "://")
	c, err := net.DialTimeout("tcp", addr, 10*time.Second)
	if err != nil {
		return nil, err
	}
	if scheme == "https" { // the handshake comes with the first request
		c = tls.Client(c, &tls.Config{InsecureSkipVerify: true})
	}
	c.SetDeadline(time.Now().Add(60 * time.Second))
	return &rawConn{Conn: c, r: bufio.NewReader(c)}, nil
}

// message is a request as it goes over the wire.
func message(method, path, key, body string) string {
	m := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: test\r\n", method, path)
	if key != "" {
		m += "Authorization: Bearer " + key + "\r\n"
	}
	if body != "" {
		m += fmt.Sprintf("Content-Length: %d\r\n", len(body))
	}
	return m + "\r\n" + body
}

func (c *rawConn) send(t testing.TB, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatalf("send: %v", err)
	}
}

// receive reads a response to its end. closes reports whether the server is going
// to close the connection after it.
func (c *rawConn) receive() (a response, closes bool, err error) {
	resp, err := http.ReadResponse(c.r, nil)
	if err != nil {
		return response{}, false, err
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return response{}, false, fmt.Errorf("in the middle of a response: %w", err)
	}
	c.answered++
	return response{resp.StatusCode, resp.Header, string(body)}, resp.Close, nil
}

func (c *rawConn) mustReceive(t testing.TB) response {
	t.Helper()
	a, _, err := c.receive()
	if err != nil {
		t.Fatalf("receive: %v", err)
	}
	return a
}

// wasReset reports whether the other side's system reset the connection.
func wasReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
