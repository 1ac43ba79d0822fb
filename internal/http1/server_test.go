package http1

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"animalstore/internal/testenv"
)

const simpleGet = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

// get sends a request and returns the body of the response.
func get(t testing.TB, c net.Conn) string {
	t.Helper()
	fmt.Fprint(c, simpleGet)
	return body(t, c)
}

func body(t testing.TB, c net.Conn) string {
	t.Helper()
	_, text := readText(t, c)
	return text
}

// readText reads a response and its body.
func readText(t testing.TB, c net.Conn) (*http.Response, string) {
	t.Helper()
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(b)
}

// TestPanic: handlers panic before and after they write, or end their goroutine, as a
// failing test does.
func TestPanic(t *testing.T) {
	logged := make(lines, 10)
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := newServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodPost:
			panic(http.ErrAbortHandler)
		case http.MethodPut:
			runtime.Goexit()
		}
		io.WriteString(w, "half a resp")
		panic("a mistake")
	}))
	l := NewServer(tcp, server, anyTarget, slog.New(slog.NewTextHandler(logged, nil)))
	serve(t, l)
	for _, request := range []string{simpleGet, "POST / HTTP/1.1\r\nHost: a\r\n\r\n", "PUT / HTTP/1.1\r\nHost: a\r\n\r\n"} {
		c := dial(t, l)
		fmt.Fprint(c, request)
		if b, err := io.ReadAll(c); len(b) > 0 || err != nil {
			t.Errorf("got %q, %v, want the connection closed without a response", b, err)
		}
	}
	line := <-logged
	for _, want := range []string{"level=ERROR", "a mistake", "server_test.go"} {
		if !strings.Contains(line, want) {
			t.Errorf("got log line %q, want %s in it", line, want)
		}
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

// outOfDescriptors is a listener whose Accept fails as if there were no file
// descriptors left, while failing is set.
type outOfDescriptors struct {
	testenv.Pipes
	failing  atomic.Bool
	failures atomic.Int64
}

func (l *outOfDescriptors) Accept() (net.Conn, error) {
	if l.failing.Load() {
		l.failures.Add(1)
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	c, err := l.Pipes.Accept()
	if l.failing.Load() && c != nil { // failing was set while Accept waited
		c.Close()
		return l.Accept()
	}
	return c, err
}

// TestOutOfDescriptors: while no connection can be accepted, open connections are
// served without delay, including those that net/http serves. Afterwards new clients
// are served soon. The log reports the failures, but not every one.
func TestOutOfDescriptors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logged := make(lines, 100)
		server := newServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }))
		inner := &outOfDescriptors{Pipes: testenv.NewPipes()}
		l := NewServer(inner, server, anyTarget, slog.New(slog.NewTextHandler(logged, nil)))
		go l.Serve()
		defer func() { // also if the test fails
			inner.failing.Store(false)
			if err := l.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
		}()
		plain, other := inner.Connect(), inner.Connect()
		get(t, plain)
		synctest.Wait() // until Accept waits for the next connection
		inner.failing.Store(true)
		_, far := net.Pipe()
		inner.Conns <- far // ends the Accept that waits
		const outage = 10 * time.Second
		for start := time.Now(); time.Since(start) < outage; time.Sleep(time.Second + time.Millisecond) {
			for request, c := range map[string]net.Conn{simpleGet: plain, "GET / HTTP/1.1\r\nHost: a\r\nPragma: no-cache\r\n\r\n": other} {
				sent := time.Now()
				if time.Since(start) == 0 && c == other {
					continue // the first request of this connection comes later
				}
				io.WriteString(c, request)
				if got := body(t, c); got != "hello" || time.Since(sent) > 0 {
					t.Errorf("%q: got %q after %v, want hello at once", request, got, time.Since(sent))
				}
			}
		}
		if n := inner.failures.Load(); n > int64(outage/acceptRetry)+20 {
			t.Errorf("got %d calls of Accept in %v, want fewer", n, outage)
		}
		inner.failing.Store(false)
		began := time.Now()
		late := inner.Connect()
		if got := get(t, late); got != "hello" || time.Since(began) > acceptRetry {
			t.Errorf("afterwards: got %q after %v, want hello within %v", got, time.Since(began), acceptRetry)
		}
		if n := len(logged); n < 5 || n > int(outage/acceptLogEvery)+2 {
			t.Fatalf("got %d log lines in %v, want about one a second", n, outage)
		}
		if line := <-logged; !strings.Contains(line, "level=ERROR") || !strings.Contains(line, "too many open files") {
			t.Errorf("got log line %q, want an error about open files", line)
		}
	})
}

// TestRespondsImmediately: clients that sent something other than a valid request get a
// response as soon as net/http can tell.
func TestRespondsImmediately(t *testing.T) {
	server := newServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }))
	server.ReadHeaderTimeout, server.ReadTimeout = time.Hour, time.Hour // the client gives up sooner
	l := listen(t, server)
	for text, want := range map[string]string{
		"\x16\x03\x01\x00\x0a\n": "400",
		"GET /\r\n":              "400",
		"GET / HTTP/1.1\r\nHost: a\r\nno field\r\n": "400",
		"GET / HTTP/1.1\nHost: a\n\n":               "200",
	} {
		c := dial(t, l)
		fmt.Fprint(c, text)
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || !strings.HasPrefix(res.Status, want) {
			t.Errorf("%q: got %v, %v, want %s", text, res, err, want)
		}
	}
}
