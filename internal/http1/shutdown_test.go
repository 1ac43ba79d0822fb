package http1

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"animalstore/internal/testenv"
)

// TestShutdown stops a server with clients in every state.
func TestShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		entered, leave := make(chan struct{}), make(chan struct{})
		p := testenv.NewPipes()
		l := NewServer(p, newServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				entered <- struct{}{}
				<-leave
			}
			io.WriteString(w, "whole")
		})), anyTarget, discard)
		serve(t, l)

		idle, otherIdle, busy, otherBusy := p.Connect(), p.Connect(), p.Connect(), p.Connect()
		get(t, idle)
		fmt.Fprint(otherIdle, "GET /%61 HTTP/1.1\r\nHost: a\r\n\r\n")
		body(t, otherIdle)
		fmt.Fprint(busy, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi")
		<-entered
		fmt.Fprint(otherBusy, "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 0\r\n\r\n")
		<-entered

		ended := make(chan error, 1)
		go func() { ended <- l.Shutdown(t.Context()) }()
		time.Sleep(time.Second)
		if len(ended) > 0 {
			t.Fatalf("shutdown returned %v while two requests were running", <-ended)
		}
		close(leave)
		for name, c := range map[string]net.Conn{"simple": busy, "handed over": otherBusy} {
			if got := body(t, c); got != "whole" {
				t.Errorf("%s: got %q, want a whole response", name, got)
			}
		}
		if err := <-ended; err != nil {
			t.Errorf("shutdown: %v", err)
		}
		for name, c := range map[string]net.Conn{"idle": idle, "idle, handed over": otherIdle} {
			if b, err := io.ReadAll(c); len(b) > 0 || err != nil {
				t.Errorf("%s: got %q, %v, want EOF", name, b, err)
			}
		}
		if _, err := p.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("the listener after the shutdown: got %v, want it closed", err)
		}
	})
}

// queue is a listener that accepts its connections only after the server has given it a
// deadline.
type queue struct {
	net.Listener
	length   atomic.Int64
	released chan struct{}
}

func (q *queue) Accept() (net.Conn, error) {
	<-q.released
	if q.length.Add(-1) < 0 {
		return nil, os.ErrDeadlineExceeded
	}
	return q.Listener.Accept()
}

func (q *queue) SetDeadline(time.Time) error {
	close(q.released)
	return nil
}

// TestShutdownServesQueue stops a server while connections with requests are waiting to
// be accepted.
func TestShutdownServesQueue(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := newServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }))
	q := &queue{Listener: tcp, released: make(chan struct{})}
	l := NewServer(q, server, anyTarget, discard)
	serve(t, l)
	var queued []net.Conn
	for range 20 {
		c := dial(t, l)
		fmt.Fprint(c, simpleGet)
		queued = append(queued, c)
	}
	q.length.Store(20)
	if err := l.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	for i, c := range queued {
		if got := body(t, c); got != "hello" {
			t.Errorf("connection %d: got %q, want hello", i, got)
		}
	}
}

// TestShutdownServesAcceptedConnections: silent connections send their first request
// after the shutdown has begun. They get a response, from net/http too.
func TestShutdownServesAcceptedConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := testenv.NewPipes()
		l := NewServer(p, newServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Connection", "close")
			io.WriteString(w, "hello")
		})), anyTarget, discard)
		serve(t, l)
		conns := map[string]net.Conn{simpleGet: p.Connect(), "GET /%61 HTTP/1.1\r\nHost: a\r\n\r\n": p.Connect()}
		synctest.Wait() // until both are accepted
		ended := make(chan error)
		go func() { ended <- l.Shutdown(t.Context()) }()
		<-l.stopped
		time.Sleep(time.Second) // until the shutdown waits for them
		for request, c := range conns {
			fmt.Fprint(c, request)
			if got := body(t, c); got != "hello" {
				t.Errorf("%q: got %q, want hello", request, got)
			}
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestShutdownIsFinal: once no client is waiting, no new request is served.
func TestShutdownIsFinal(t *testing.T) {
	var requests atomic.Int64
	l := listen(t, newServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		io.WriteString(w, "hello")
	})))
	c := dial(t, l)
	get(t, c)
	l.stop()
	if err := l.drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(c, simpleGet)
	if b, _ := io.ReadAll(c); len(b) > 0 || requests.Load() != 1 {
		t.Errorf("a request was served after the drain: %q", b)
	}
}

// TestShutdownTimeout: a request doesn't end before the time for the shutdown is over.
func TestShutdownTimeout(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	l := listen(t, newServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(entered)
		<-leave
	})))
	c := dial(t, l)
	fmt.Fprint(c, simpleGet)
	<-entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	if b, err := io.ReadAll(c); len(b) > 0 {
		t.Errorf("got %q, %v, want it cut off", b, err)
	}
	close(leave)
}

// TestShutdownUnderLoad stops a server whose clients keep sending requests until a
// response closes the connection. A client may find its connection closed, but
// every response is complete.
func TestShutdownUnderLoad(t *testing.T) {
	for range 5 {
		var draining atomic.Bool
		var requests atomic.Int64
		underLoad := make(chan struct{})
		l := listen(t, newServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if requests.Add(1) == 200 {
				close(underLoad)
			}
			if draining.Load() {
				w.Header().Set("Connection", "close")
			}
			io.WriteString(w, "whole")
		})))
		var clients sync.WaitGroup
		for i := range 16 {
			c := dial(t, l)
			request := simpleGet
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
						t.Errorf("a response was cut off: %v", err)
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
		<-underLoad
		draining.Store(true)
		if err := l.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		clients.Wait()
	}
}
