package http1

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

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

// TestShutdownLeavesNobodyOut has a connection that was silent so far ask for
// something when the end has begun. It is owed an answer, be it net/http's.
func TestShutdownLeavesNobodyOut(t *testing.T) {
	for range 20 {
		tcp, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server := newServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Connection", "close")
			io.WriteString(w, "hello")
		}))
		l := Listen(tcp, server, anyTarget)
		go server.Serve(l)
		conns := map[string]net.Conn{plainGet: dial(t, l), "GET /%61 HTTP/1.1\r\nHost: a\r\n\r\n": dial(t, l)}
		ended := make(chan error)
		for len(l.all()) < len(conns) { // until it has taken them
			time.Sleep(time.Millisecond)
		}
		go func() { ended <- l.Shutdown(t.Context()) }()
		<-l.accepting
		for request, c := range conns {
			fmt.Fprint(c, request)
			if got := body(t, c); got != "hello" {
				t.Errorf("to %q got %q, want hello", request, got)
			}
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// TestShutdownIsFinal: when nobody waits any more, nobody can begin to.
func TestShutdownIsFinal(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var requests atomic.Int64
	server := newServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		io.WriteString(w, "hello")
	}))
	l := Listen(tcp, server, anyTarget)
	go server.Serve(l)
	c := dial(t, l)
	get(t, c)
	if err := errors.Join(l.stop(), l.wait(t.Context())); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(c, plainGet)
	if b, _ := io.ReadAll(c); len(b) > 0 || requests.Load() != 1 {
		t.Errorf("a request was served after the last: %q", b)
	}
	if err := l.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestShutdownOverTLS: net/http takes leave of its connections in their own way.
func TestShutdownOverTLS(t *testing.T) {
	certified := httptest.NewTLSServer(nil)
	certificates := certified.TLS.Certificates
	certified.Close()
	for _, c := range []struct {
		protocol, send string
	}{
		{"http/1.1", plainGet},
		{"h2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"},
	} {
		t.Run(c.protocol, func(t *testing.T) {
			tcp, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			server := newServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }))
			l := Listen(tcp, server, nil)
			config := &tls.Config{Certificates: certificates, NextProtos: []string{"h2", "http/1.1"}}
			go server.Serve(tls.NewListener(l, config))
			conn, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{c.protocol}})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(30 * time.Second))
			fmt.Fprint(conn, c.send)
			if c.protocol == "h2" {
				io.ReadFull(conn, make([]byte, 9)) // the head of the first frame
			} else {
				body(t, conn)
			}
			if err := l.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
			if c.protocol == "h2" {
				goAway := []byte{7, 0, 0, 0, 0, 0}
				if rest, err := io.ReadAll(conn); err != nil || !bytes.Contains(rest, goAway) {
					t.Errorf("the connection ended with %x, %v, want GOAWAY", rest, err)
				}
				return
			}
			if rest, err := io.ReadAll(conn.NetConn()); err != nil || len(rest) == 0 {
				t.Errorf("the connection ended with %x, %v, want close_notify", rest, err)
			}
		})
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
