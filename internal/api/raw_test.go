package api_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// raw sends text over a connection of its own and returns the first answer,
// which is held to the document.
func (s *service) raw(t testing.TB, text string) answer {
	t.Helper()
	return s.rawEnd(t, text, false)
}

// rawEnd does the same and, if cut, sends no more than text. To net/http a
// client that does so in the middle of nothing is gone.
func (s *service) rawEnd(t testing.TB, text string, cut bool) answer {
	t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	if cut {
		conn.(*net.TCPConn).CloseWrite()
	}
	line, _, _ := strings.Cut(text, "\r\n")
	method, rest, _ := strings.Cut(line, " ")
	target, _, _ := strings.Cut(rest, " ")
	res, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.ParseRequestURI(target)
	if err != nil {
		t.Fatal(err)
	}
	if res.Close { // ReadResponse takes the header away
		res.Header.Set("Connection", "close")
	}
	e := exchange{method: method, url: u, status: res.StatusCode, answered: res.Header, body: body}
	if err := e.check(); err != nil {
		t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header, body}
}
