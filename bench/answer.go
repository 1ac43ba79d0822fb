package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// answer is a response as it was on the wire.
type answer struct {
	Method, URI string // what was asked
	Status      int
	Fields      [][2]string // names in the case they were sent in
	Body        string
}

func (a *answer) String() string { return fmt.Sprintf("%s %s: %d", a.Method, a.URI, a.Status) }

func (a *answer) field(name string) string {
	for _, f := range a.Fields {
		if strings.EqualFold(f[0], name) {
			return f[1]
		}
	}
	return ""
}

// same reports whether two answers are alike but for the moment they were given.
func (a *answer) same(b *answer) bool {
	fields := func(a *answer) [][2]string {
		return slices.DeleteFunc(slices.Clone(a.Fields), func(f [2]string) bool { return f[0] == "Date" || f[0] == "X-Request-Id" })
	}
	return a.Status == b.Status && a.Body == b.Body && slices.Equal(fields(a), fields(b))
}

// client asks over one connection. It is not net/http's, because that does not
// tell how a field was spelled.
type client struct {
	conn net.Conn
	in   *bufio.Reader
	key  string
}

func (s *server) dial() (*client, error) {
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		return nil, err
	}
	return &client{conn, bufio.NewReader(conn), s.key}, nil
}

func (c *client) close() { c.conn.Close() }

func (c *client) do(method, uri, body string) (*answer, error) {
	c.conn.SetDeadline(time.Now().Add(10 * time.Second))
	_, err := fmt.Fprintf(c.conn, "%s %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		method, uri, c.conn.RemoteAddr(), c.key, len(body), body)
	if err != nil {
		return nil, err
	}
	a := &answer{Method: method, URI: uri}
	line, err := c.in.ReadString('\n')
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Sscanf(line, "HTTP/1.1 %d", &a.Status); err != nil {
		return nil, fmt.Errorf("status line %q: %w", line, err)
	}
	for {
		line, err := c.in.ReadString('\n')
		if err != nil {
			return nil, err
		}
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			break
		}
		name, value, _ := strings.Cut(line, ": ")
		a.Fields = append(a.Fields, [2]string{name, value})
	}
	length, err := strconv.Atoi(a.field("Content-Length"))
	if err != nil {
		return nil, errors.New("the answer has no Content-Length")
	}
	text := make([]byte, length)
	_, err = io.ReadFull(c.in, text)
	a.Body = string(text)
	return a, err
}

// ask asks once, over a connection of its own.
func (s *server) ask(method, uri, body string) (*answer, error) {
	c, err := s.dial()
	if err != nil {
		return nil, err
	}
	defer c.close()
	return c.do(method, uri, body)
}
