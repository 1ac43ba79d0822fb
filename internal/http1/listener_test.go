package http1

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"
)

const plainGet = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

func dial(t testing.TB, l *Listener) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(30 * time.Second))
	return c
}

// get sends a request and returns the body of the response.
func get(t testing.TB, c net.Conn) string {
	t.Helper()
	fmt.Fprint(c, plainGet)
	return body(t, c)
}

func body(t testing.TB, c net.Conn) string {
	t.Helper()
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestPanic has handlers panic before and after they write.
func TestPanic(t *testing.T) {
	logged := make(lines, 10)
	server := newServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			panic(http.ErrAbortHandler)
		}
		io.WriteString(w, "half a resp")
		panic("a mistake")
	}))
	server.ErrorLog = log.New(logged, "", 0)
	l := listen(t, server)
	for _, request := range []string{plainGet, "POST / HTTP/1.1\r\nHost: a\r\n\r\n"} {
		c := dial(t, l)
		fmt.Fprint(c, request)
		if b, err := io.ReadAll(c); len(b) > 0 || err != nil {
			t.Errorf("got %q, %v, want the connection closed without a response", b, err)
		}
	}
	if line := <-logged; !strings.Contains(line, "panic serving 127.0.0.1:") || !strings.Contains(line, "a mistake") {
		t.Errorf("got log line %q, want it to report a panic", line)
	}
	if len(logged) > 0 {
		t.Errorf("got another log line %q, want only one panic reported", <-logged)
	}
}

type lines chan string

func (l lines) Write(b []byte) (int, error) {
	l <- string(b)
	return len(b), nil
}

// TestGoexit has a handler end its goroutine, as a failing test does.
func TestGoexit(t *testing.T) {
	l := listen(t, newServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { runtime.Goexit() })))
	c := dial(t, l)
	fmt.Fprint(c, plainGet)
	if b, err := io.ReadAll(c); len(b) > 0 || err != nil {
		t.Errorf("got %q, %v, want the connection closed", b, err)
	}
}

// TestListenerFails: if somebody else closes the listener, Serve fails.
func TestListenerFails(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := newServer(http.NotFoundHandler())
	l := Listen(tcp, server, anyTarget)
	tcp.Close()
	if err := server.Serve(l); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v, want %v", err, net.ErrClosed)
	}
}

// TestAcceptFails has the system fail to accept for a while, as it does when there
// are no file descriptors left.
func TestAcceptFails(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := newServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }))
	l := Listen(&failing{Listener: tcp, left: 3}, server, anyTarget)
	go server.Serve(l)
	if got := get(t, dial(t, l)); got != "hello" {
		t.Errorf("got %q, want hello", got)
	}
	if err := l.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

type failing struct {
	net.Listener
	left int
}

func (f *failing) Accept() (net.Conn, error) {
	if f.left > 0 {
		f.left--
		return nil, temporary{}
	}
	return f.Listener.Accept()
}

type temporary struct{}

func (temporary) Error() string   { return "too many open files" }
func (temporary) Timeout() bool   { return false }
func (temporary) Temporary() bool { return true }

// TestRespondsImmediately has clients wait for a response to something that isn't a
// valid request. They get it as soon as net/http can tell.
func TestRespondsImmediately(t *testing.T) {
	l := listen(t, newServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") })))
	for text, want := range map[string]string{
		"\x16\x03\x01\x00\x0a\n": "400",
		"GET /\r\n":              "400",
		"GET / HTTP/1.1\r\nHost: a\r\nno field\r\n": "400",
		"GET / HTTP/1.1\nHost: a\n\n":               "200",
	} {
		c := dial(t, l)
		c.SetDeadline(time.Now().Add(4 * time.Second)) // sooner than any timeout
		fmt.Fprint(c, text)
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || !strings.HasPrefix(res.Status, want) {
			t.Errorf("%q: got %v, %v, want %s", text, res, err, want)
		}
	}
}
