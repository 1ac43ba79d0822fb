package http1

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
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

// get sends a request and returns the body of its answer.
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

// TestClientGone has a handler wait for something when its client goes away.
func TestClientGone(t *testing.T) {
	entered, left := make(chan struct{}), make(chan error)
	l := listen(t, newServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
		left <- r.Context().Err()
	})))
	c := dial(t, l)
	fmt.Fprint(c, plainGet)
	<-entered
	c.Close()
	select {
	case err := <-left:
		if err != context.Canceled {
			t.Errorf("the context ended with %v, want %v", err, context.Canceled)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the request was not told that its client is gone")
	}
}

// TestNextRequestIsNoEnd has clients send their next request while a handler
// still watches for the end of the one before: it stays, and is answered.
func TestNextRequestIsNoEnd(t *testing.T) {
	entered, next := make(chan struct{}), make(chan struct{})
	l := listen(t, newServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		done := r.Context().Done()
		entered <- struct{}{}
		<-next
		select {
		case <-done:
			fmt.Fprint(w, "ended")
		case <-time.After(5 * time.Millisecond):
			fmt.Fprint(w, "went on")
		}
	})))
	c := dial(t, l)
	br := bufio.NewReader(c)
	fmt.Fprint(c, plainGet)
	const requests = 500 // enough to fill the room for reading many times over
	for i := range requests {
		<-entered
		if i < requests-1 {
			fmt.Fprint(c, plainGet)
		}
		next <- struct{}{}
		res, err := http.ReadResponse(br, nil)
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		if b, _ := io.ReadAll(res.Body); string(b) != "went on" {
			t.Fatalf("request %d: the context %s, want it went on", i, b)
		}
	}
}

// TestContext looks at what the context of a request says when.
func TestContext(t *testing.T) {
	kept := make(chan context.Context, 2)
	l := listen(t, newServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kept <- r.Context()
		child, cancel := context.WithTimeout(r.Context(), time.Hour)
		defer cancel()
		fmt.Fprint(w, child.Err(), r.Context().Err())
	})))
	c := dial(t, l)
	for range 2 {
		if got := get(t, c); got != "<nil> <nil>" {
			t.Errorf("during the request: %s, want no error", got)
		}
		ctx := <-kept
		<-ctx.Done() // does not wait: the request was answered
		if ctx.Err() != context.Canceled {
			t.Errorf("after it: %v, want %v", ctx.Err(), context.Canceled)
		}
	}
}

// TestPanic has handlers panic before they wrote anything, and after.
func TestPanic(t *testing.T) {
	logged := make(lines, 10)
	server := newServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			panic(http.ErrAbortHandler)
		}
		io.WriteString(w, "half an ans")
		panic("a mistake")
	}))
	server.ErrorLog = log.New(logged, "", 0)
	l := listen(t, server)
	for _, request := range []string{plainGet, "POST / HTTP/1.1\r\nHost: a\r\n\r\n"} {
		c := dial(t, l)
		fmt.Fprint(c, request)
		if b, err := io.ReadAll(c); len(b) > 0 || err != nil {
			t.Errorf("got %q, %v, want the connection closed without a word", b, err)
		}
	}
	if line := <-logged; !strings.Contains(line, "panic serving 127.0.0.1:") || !strings.Contains(line, "a mistake") {
		t.Errorf("the log says %q, want it to tell of a panic", line)
	}
	if len(logged) > 0 {
		t.Errorf("the log also says %q, want it to tell of one panic alone", <-logged)
	}
}

type lines chan string

func (l lines) Write(b []byte) (int, error) {
	l <- string(b)
	return len(b), nil
}

// TestWrongLength has a handler write another length than it said: nobody may
// take the rest for the next answer.
func TestWrongLength(t *testing.T) {
	for _, wrote := range []string{"", "four", "six..."} {
		l := listen(t, newServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "5")
			io.WriteString(w, wrote)
		})))
		c := dial(t, l)
		fmt.Fprint(c, plainGet+plainGet)
		b, err := io.ReadAll(c)
		if n := strings.Count(string(b), "HTTP/1.1"); n != 1 || err != nil {
			t.Errorf("with a body of %q got %d answers, %v, want one and the end:\n%s", wrote, n, err, b)
		}
	}
}

// TestShutdown ends a server with clients in every state.
func TestShutdown(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	entered, leave := make(chan struct{}), make(chan struct{})
	server := newServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			entered <- struct{}{}
			<-leave
		}
		io.WriteString(w, "whole")
	}))
	l := Listen(tcp, server, anyTarget)
	go server.Serve(l)

	idle, passedIdle, busy, passedBusy := dial(t, l), dial(t, l), dial(t, l), dial(t, l)
	get(t, idle)
	fmt.Fprint(passedIdle, "GET /%61 HTTP/1.1\r\nHost: a\r\n\r\n")
	body(t, passedIdle)
	fmt.Fprint(busy, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi")
	<-entered
	fmt.Fprint(passedBusy, "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 0\r\n\r\n")
	<-entered

	ended := make(chan error)
	go func() { ended <- l.Shutdown(t.Context()) }()
	select {
	case err := <-ended:
		t.Fatalf("ended with %v while two requests were under way", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(leave)
	for name, c := range map[string]net.Conn{"plain": busy, "passed on": passedBusy} {
		if got := body(t, c); got != "whole" {
			t.Errorf("%s: got %q, want whole", name, got)
		}
	}
	if err := <-ended; err != nil {
		t.Errorf("shutdown: %v", err)
	}
	for name, c := range map[string]net.Conn{"idle": idle, "idle, passed on": passedIdle} {
		if b, err := io.ReadAll(c); len(b) > 0 || err != nil {
			t.Errorf("%s: got %q, %v, want the end", name, b, err)
		}
	}
	if c, err := net.Dial("tcp", l.Addr().String()); err == nil {
		c.Close()
		t.Error("a connection was accepted after the end")
	}
}

// TestShutdownRunsOut has a request that does not end.
func TestShutdownRunsOut(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	entered, leave := make(chan struct{}), make(chan struct{})
	server := newServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(entered)
		<-leave
	}))
	l := Listen(tcp, server, anyTarget)
	go server.Serve(l)
	c := dial(t, l)
	fmt.Fprint(c, plainGet)
	<-entered
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := l.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
	}
	if b, err := io.ReadAll(c); len(b) > 0 {
		t.Errorf("got %q, %v, want it cut off", b, err)
	}
	close(leave)
}

// TestShutdownUnderLoad ends a server whose clients ask on until they are told to
// go. One that asks at the very moment may find the connection closed, but what
// is answered is answered in full.
func TestShutdownUnderLoad(t *testing.T) {
	for range 20 {
		var draining atomic.Bool
		tcp, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server := newServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if draining.Load() {
				w.Header().Set("Connection", "close")
			}
			io.WriteString(w, "whole")
		}))
		l := Listen(tcp, server, anyTarget)
		go server.Serve(l)
		var clients sync.WaitGroup
		for i := range 16 {
			c := dial(t, l)
			request := plainGet
			if i%2 == 1 {
				request = "GET /%61 HTTP/1.1\r\nHost: a\r\n\r\n"
			}
			clients.Go(func() {
				for br := bufio.NewReader(c); ; {
					io.WriteString(c, request)
					if _, err := br.Peek(1); err != nil {
						return
					}
					res, err := http.ReadResponse(br, nil)
					if err != nil {
						t.Errorf("an answer was cut off: %v", err)
						return
					}
					if b, err := io.ReadAll(res.Body); string(b) != "whole" || err != nil {
						t.Errorf("got %q, %v, want whole", b, err)
					}
					if res.Close {
						return
					}
				}
			})
		}
		time.Sleep(2 * time.Millisecond) // of load
		draining.Store(true)
		if err := l.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		clients.Wait()
	}
}

// pipes is a listener for net.Pipe connections, for which synctest has the clock.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (pipes) Addr() net.Addr { return &net.TCPAddr{} }
func (p pipes) Close() error { close(p); return nil }

// TestTimeouts has clients that keep a connection waiting.
func TestTimeouts(t *testing.T) {
	for _, c := range []struct {
		name string
		send []string // with two seconds between them
		want time.Duration
	}{
		{"nothing sent", nil, 5 * time.Second},
		{"half a head", []string{"GET / HT"}, 5 * time.Second},
		{"a head in drops", []string{"G", "E", "T", " ", "/"}, 5 * time.Second},
		{"idle", []string{plainGet}, 60 * time.Second},
		{"idle, and then half a head", []string{plainGet, "GET / HT"}, 7 * time.Second},
		{"half a head after an answer", []string{plainGet + "GET / HT"}, 5 * time.Second},
		{"half a body", []string{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhi"}, 10 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					io.ReadAll(r.Body)
					io.WriteString(w, "hello")
				}))
				p := make(pipes)
				l := Listen(p, server, anyTarget)
				go server.Serve(l)
				client, far := net.Pipe()
				p <- far
				start := time.Now()
				var sender sync.WaitGroup
				sender.Go(func() {
					for i, text := range c.send {
						if i > 0 {
							time.Sleep(2 * time.Second)
						}
						if _, err := io.WriteString(client, text); err != nil {
							return
						}
					}
				})
				io.Copy(io.Discard, client)
				if took := time.Since(start); took < c.want || took > c.want+time.Second {
					t.Errorf("cut after %v, want %v", took, c.want)
				}
				client.Close()
				sender.Wait()
				if err := l.Shutdown(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestSlowReader has a client that does not take its answer.
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello") }))
		p := make(pipes)
		l := Listen(p, server, anyTarget)
		go server.Serve(l)
		client, far := net.Pipe()
		p <- far
		io.WriteString(client, plainGet)
		start := time.Now()
		client.Read(make([]byte, 1))
		client.SetReadDeadline(start.Add(time.Hour))
		time.Sleep(20 * time.Second)
		if _, err := io.ReadAll(client); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("the connection is open after 20s, want it cut after 15s")
		}
		client.Close()
		if err := l.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestAcceptFails has the system refuse connections for a while, as it does when
// there are no file descriptors left.
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

// TestAnswersAtOnce has clients wait for an answer to what never was a request, or
// is a sloppy one. They get it as soon as net/http can tell, and no later.
func TestAnswersAtOnce(t *testing.T) {
	l := listen(t, newServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") })))
	for text, want := range map[string]string{
		"\x16\x03\x01\x00\x0a\n": "400",
		"GET /\r\n":              "400",
		"GET / HTTP/1.1\r\nHost: a\r\nno field\r\n": "400",
		"GET / HTTP/1.1\nHost: a\n\n":               "200",
	} {
		c := dial(t, l)
		c.SetDeadline(time.Now().Add(4 * time.Second)) // less than any timeout
		fmt.Fprint(c, text)
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || !strings.HasPrefix(res.Status, want) {
			t.Errorf("to %q got %v, %v, want %s", text, res, err, want)
		}
	}
}
