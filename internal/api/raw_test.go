package api_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// raw sends text over a new connection and returns the first response,
// which is held to the document.
func (s *service) raw(t testing.TB, text string) response {
	t.Helper()
	return s.rawEnd(t, text, false)
}

// rawEnd does the same and, if cut, closes the sending side after text.
func (s *service) rawEnd(t testing.TB, text string, cut bool) response {
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
	var wire bytes.Buffer
	res, err := http.ReadResponse(bufio.NewReader(io.TeeReader(conn, &wire)), &http.Request{Method: method})
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
	e := exchange{method: method, url: u, status: res.StatusCode, answered: res.Header, body: body, now: s.clock.Now()}
	if err := errors.Join(e.check(), wireSpelling(u.Path, rawHeader(wire.String()))); err != nil {
		t.Fatal(err)
	}
	return response{res.StatusCode, res.Header, body}
}

// rawHeader is the header of a response with its names as they were sent.
func rawHeader(wire string) http.Header {
	head, _, _ := strings.Cut(wire, "\r\n\r\n")
	h := http.Header{}
	for line := range strings.SplitSeq(head, "\r\n") {
		if name, value, ok := strings.Cut(line, ": "); ok {
			h[name] = append(h[name], value)
		}
	}
	return h
}
