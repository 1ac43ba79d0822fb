package main

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// listener knows the connections it accepted, and makes their deadlines cheap.
type listener struct {
	net.Listener
	mu    sync.Mutex
	conns map[*conn]struct{}
}

func newListener(l net.Listener) *listener {
	return &listener{Listener: l, conns: map[*conn]struct{}{}}
}

func (l *listener) Accept() (net.Conn, error) {
	raw, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := newConn(raw, l)
	c.busy.Store(true) // its first request is on its way
	l.mu.Lock()
	l.conns[c] = struct{}{}
	l.mu.Unlock()
	return c, nil
}

// track is an [http.Server] ConnState hook.
func (l *listener) track(c net.Conn, state http.ConnState) {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	c.(*conn).busy.Store(state == http.StateNew || state == http.StateActive)
}

func (l *listener) anyBusy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		if c.busy.Load() {
			return true
		}
	}
	return false
}

// wait returns when no connection owes anybody an answer, or with ctx's error
// when it ends. New ones must not be accepted any more.
//
// [http.Server.Shutdown] waits for requests it has read only. One that it reads
// a moment after its call, on a connection accepted before, it drops without a
// word. So the listener is closed first, and Shutdown is called when nobody
// waits any more.
func (l *listener) wait(ctx context.Context) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for l.anyBusy() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// conn is a connection of a listener's.
//
// net/http sets half a dozen deadlines a request, each of which moves a timer,
// and nearly all of which are later than the one before. Here a later deadline
// is only remembered. When the timer goes off too early, it is set anew.
type conn struct {
	net.Conn
	listener    *listener
	busy        atomic.Bool // somebody waits for an answer, or is about to ask
	read, write deadline
}

func newConn(raw net.Conn, l *listener) *conn {
	return &conn{
		Conn:     raw,
		listener: l,
		read:     deadline{arm: raw.SetReadDeadline},
		write:    deadline{arm: raw.SetWriteDeadline},
	}
}

func (c *conn) Close() error {
	c.listener.mu.Lock()
	delete(c.listener.conns, c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}

// CloseWrite is what net/http looks for to end a connection in good order.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

func (c *conn) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		if err == nil || !c.read.early(err) {
			return n, err
		}
	}
}

func (c *conn) Write(b []byte) (written int, err error) {
	for {
		n, err := c.Conn.Write(b[written:])
		written += n
		if err == nil || !c.write.early(err) {
			return written, err
		}
	}
}

func (c *conn) SetReadDeadline(t time.Time) error  { return c.read.set(t) }
func (c *conn) SetWriteDeadline(t time.Time) error { return c.write.set(t) }

func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// lookAgain is how far ahead a timer is set where a later deadline, or none, is
// wanted. No deadline that a request brings is sooner, so those need no timer of
// their own.
const lookAgain = readHeaderTimeout

// deadline is when reads or writes have to fail. Zero times are never.
type deadline struct {
	arm func(time.Time) error // sets the connection's

	mu     sync.Mutex
	wanted time.Time
	armed  time.Time // what the connection was told: never later than wanted
}

func (d *deadline) set(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wanted = t
	switch {
	case interrupts(d.armed) && !interrupts(t):
		return d.wait()
	case t.IsZero(), !d.armed.IsZero() && !t.Before(d.armed):
		return nil
	}
	d.armed = t
	return d.arm(t)
}

// interrupts reports whether t is so long ago that it was set to end a read that
// is under way, which is how net/http gets its connection back.
func interrupts(t time.Time) bool { return !t.IsZero() && t.Unix() < 1e6 }

// early reports whether err only says that an older deadline passed, and then has
// the connection wait on.
func (d *deadline) early(err error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.wanted.IsZero() && !time.Now().Before(d.wanted) {
		return false
	}
	return d.wait() == nil
}

// wait sets the timer for the deadline that is wanted, or sooner.
func (d *deadline) wait() error {
	d.armed = time.Now().Add(lookAgain)
	if !d.wanted.IsZero() && d.wanted.Before(d.armed) {
		d.armed = d.wanted
	}
	return d.arm(d.armed)
}
