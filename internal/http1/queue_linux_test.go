package http1

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
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

// TestShutdownServesQueue stops a server while connections with requests wait to be
// accepted.
func TestShutdownServesQueue(t *testing.T) { overBoth(t, testShutdownServesQueue) }

func testShutdownServesQueue(t *testing.T, config *tls.Config) {
	var single net.ListenConfig
	single.SetMultipathTCP(false)
	tcp, err := single.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := newServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }))
	slow := slowListener{tcp.(*net.TCPListener), make(chan struct{})}
	l := Listen(slow, config, server, anyTarget, discard)
	l.queueTime = time.Minute
	go server.Serve(l)
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
	// Clients are turned away now, neither accepted nor refused.
	for deadline := time.Now().Add(30 * time.Second); ; {
		c, err := net.DialTimeout("tcp", l.Addr().String(), 20*time.Millisecond)
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
	if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
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
