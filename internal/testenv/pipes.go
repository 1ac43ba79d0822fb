package testenv

import (
	"context"
	"net"
	"sync"
	"time"
)

// Pipes is a listener for net.Pipe connections, whose clock synctest controls.
type Pipes struct {
	Conns  chan net.Conn // that Accept returns
	closed chan struct{}
	close  func()
}

// NewPipes returns a listener without connections.
func NewPipes() Pipes {
	closed := make(chan struct{})
	return Pipes{make(chan net.Conn), closed, sync.OnceFunc(func() { close(closed) })}
}

// Dial connects to the listener.
func (p Pipes) Dial(context.Context, string, string) (net.Conn, error) { return p.Connect(), nil }

// Connect connects to the listener.
func (p Pipes) Connect() net.Conn {
	client, far := net.Pipe()
	p.Conns <- far
	return client
}

// Accept implements [net.Listener].
func (p Pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.Conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Addr implements [net.Listener].
func (Pipes) Addr() net.Addr { return &net.TCPAddr{} }

// Close implements [net.Listener].
func (p Pipes) Close() error { p.close(); return nil }

// SetDeadline ends Accept.
func (p Pipes) SetDeadline(time.Time) error { return p.Close() }
