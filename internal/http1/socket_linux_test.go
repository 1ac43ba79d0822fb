package http1

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

// slowListener accepts connections only once it is released.
type slowListener struct {
	*net.TCPListener
	released chan struct{}
}

func (l slowListener) Accept() (net.Conn, error) {
	<-l.released
	return l.TCPListener.Accept()
}

// TestShutdownServesQueue stops a server while connections with requests are waiting to
// be accepted.
func TestShutdownServesQueue(t *testing.T) { overBoth(t, testShutdownServesQueue) }

func testShutdownServesQueue(t *testing.T, config *tls.Config) {
	var single net.ListenConfig
	single.SetMultipathTCP(false)
	tcp, err := single.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := newServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }))
	server.ReadHeaderTimeout, server.ReadTimeout = time.Minute, time.Minute // for handshakes on a busy machine
	slow := slowListener{tcp.(*net.TCPListener), make(chan struct{})}
	l := NewServer(slow, config, server, anyTarget, discard)
	l.queueTime = time.Minute
	go l.Serve()
	var queued []net.Conn
	for range 20 {
		c := dial(t, l)
		go fmt.Fprint(c, plainGet) // over TLS it waits for the server
		queued = append(queued, c)
	}
	if !hasQueue(tcp) {
		t.Error("hasQueue: got false, want true")
	}
	ended := make(chan error)
	go func() { ended <- l.Shutdown(t.Context()) }()
	// Clients are turned away now: neither accepted nor refused.
	for deadline := time.Now().Add(30 * time.Second); ; {
		c, err := net.DialTimeout("tcp", l.inner.Addr().String(), 20*time.Millisecond)
		if err != nil {
			break
		}
		c.Close()
		if time.Now().After(deadline) {
			t.Fatal("clients can still connect after the shutdown began")
		}
	}
	close(slow.released)
	for i, c := range queued {
		if got := body(t, c); got != "hello" {
			t.Errorf("connection %d: got %q, want hello", i, got)
		}
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", l.inner.Addr().String()); err == nil {
		t.Error("a connection was accepted after the shutdown")
	}
}

// TestHasUnread: a connection on which a request has arrived isn't idle.
func TestHasUnread(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	client, err := net.Dial("tcp", tcp.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	c, err := tcp.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if hasUnread(c) {
		t.Error("before anything was sent: got true, want false")
	}
	io.WriteString(client, "x")
	for deadline := time.Now().Add(30 * time.Second); !hasUnread(c); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("after a byte was sent: got false, want true")
		}
	}
	c.Read(make([]byte, 1))
	if hasUnread(c) {
		t.Error("after it was read: got true, want false")
	}
}

// heldListener accepts connections that aren't read from while held is set.
type heldListener struct {
	net.Listener
	held atomic.Bool
}

type heldConn struct {
	*net.TCPConn
	held   *atomic.Bool
	closed atomic.Bool
}

func (l *heldListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &heldConn{TCPConn: c.(*net.TCPConn), held: &l.held}, nil
}

func (c *heldConn) Read(b []byte) (int, error) {
	for !c.closed.Load() && (c.held.Load() || !hasUnread(c)) {
		time.Sleep(time.Millisecond)
	}
	return c.TCPConn.Read(b)
}

func (c *heldConn) Close() error {
	c.closed.Store(true)
	return c.TCPConn.Close()
}

// TestArrivedRequestIsNotIdle: a connection isn't closed as idle if a request has
// arrived but hasn't been read yet.
func TestArrivedRequestIsNotIdle(t *testing.T) { overBoth(t, testArrivedRequestIsNotIdle) }

func testArrivedRequestIsNotIdle(t *testing.T, config *tls.Config) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := newServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }))
	inner := &heldListener{Listener: tcp}
	l := NewServer(inner, config, server, anyTarget, discard)
	serve(t, l)
	client := dial(t, l)
	get(t, client)
	inner.held.Store(true)
	fmt.Fprint(client, plainGet)
	c := l.connections()[0]
	for deadline := time.Now().Add(30 * time.Second); c.state.Load() != idle || !hasUnread(c.socket); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the request hasn't arrived on an idle connection")
		}
	}
	if !l.closeIdle() {
		t.Error("got no connection to wait for, want one with a request")
	}
	inner.held.Store(false)
	if got := body(t, client); got != "hello" {
		t.Errorf("got %q, want hello", got)
	}
}
