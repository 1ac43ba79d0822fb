package testenv

import (
	"context"
	"net"
	"time"
)

// Pipes is a listener for net.Pipe connections, whose clock synctest controls.
type Pipes chan net.Conn

// Dial connects to the listener.
func (p Pipes) Dial(context.Context, string, string) (net.Conn, error) { return p.Connect(), nil }

// Connect connects to the listener.
func (p Pipes) Connect() net.Conn {
	client, far := net.Pipe()
	p <- far
	return client
}

// Accept implements [net.Listener].
func (p Pipes) Accept() (net.Conn, error) {
	c, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

// Addr implements [net.Listener].
func (Pipes) Addr() net.Addr { return &net.TCPAddr{} }

// Close implements [net.Listener].
func (Pipes) Close() error { return nil }

// SetDeadline ends Accept.
func (p Pipes) SetDeadline(time.Time) error { close(p); return nil }
