// Package http1 stands between the network and net/http, to make plain requests
// cheap.
//
// Nearly every request is of the plainest kind: HTTP/1.1, a few header fields, a
// short body or none, all of it in one piece. Such requests this package reads
// and answers itself (request.go says which). At the first one of any other kind
// it hands the connection to net/http for good, with everything that came since
// the last answer. So what a client sends means here what it means to net/http:
// it is either understood in full, or not looked at.
package http1

import (
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Listener accepts connections, answers the plain requests on them, and passes
// the others on to an [http.Server]. It knows which of its connections owe
// somebody an answer.
type Listener struct {
	inner  net.Listener
	server *http.Server
	plain  func(target string) bool // nil where net/http has every request

	passed   chan net.Conn // to net/http
	failed   chan error    // of accepting
	accepted chan struct{} // closed when nothing is accepted any more
	closed   chan struct{}
	close    sync.Once
	stop     func() error // closes inner, once

	mu    sync.Mutex
	conns map[*conn]struct{}
}

// Listen makes a Listener for server to serve on, whose handler and timeouts it
// keeps to. Requests for whose target plain is false are left to net/http. So are
// all if it is nil, as it has to be beneath TLS.
//
// Two things are different for a handler. The header of a request is not to be
// changed: it is that of the next one too if that was sent with the same fields.
// And an answer is sent when the handler returns, or when it grows large.
func Listen(inner net.Listener, server *http.Server, plain func(target string) bool) *Listener {
	l := &Listener{
		inner:    inner,
		server:   server,
		plain:    plain,
		passed:   make(chan net.Conn),
		failed:   make(chan error),
		accepted: make(chan struct{}),
		closed:   make(chan struct{}),
		stop:     sync.OnceValue(inner.Close),
		conns:    map[*conn]struct{}{},
	}
	server.ConnState = track
	go l.accept()
	return l
}

func (l *Listener) accept() {
	defer close(l.accepted)
	for {
		raw, err := l.inner.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// net/http knows what to do: ask again after a while, or give up.
			select {
			case l.failed <- err:
				continue
			case <-l.closed:
				return
			}
		}
		c := newConn(raw, l)
		l.mu.Lock()
		l.conns[c] = struct{}{}
		l.mu.Unlock()
		go c.serve()
	}
}

// Accept returns the next connection that is net/http's to serve.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.passed:
		return c, nil
	case err := <-l.failed:
		return nil, err
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// pass gives a connection to net/http.
func (l *Listener) pass(c *conn) {
	select {
	case l.passed <- c:
	case <-l.closed:
		c.Close()
	}
}

// Addr is where it listens.
func (l *Listener) Addr() net.Addr { return l.inner.Addr() }

// Close accepts nothing more, and passes nothing on. What is connected stays so.
func (l *Listener) Close() error {
	l.close.Do(func() { close(l.closed) })
	return l.stop()
}

// Shutdown ends the listener and its server in good order: it accepts nothing
// more, lets every request under way finish, and closes the connections. If ctx
// ends first, it cuts off what is left and returns an error.
//
// [http.Server.Shutdown] waits for requests it has read only. One that it reads
// a moment after its call, on a connection accepted before, it drops without a
// word. So it is called when nobody waits any more.
func (l *Listener) Shutdown(ctx context.Context) error {
	err := errors.Join(l.stop(), l.wait(ctx))
	if err == nil {
		l.closeConns(true)
		err = l.server.Shutdown(ctx)
	}
	if err != nil {
		l.server.Close()
		l.closeConns(false)
	}
	return err
}

// wait returns when no connection owes anybody an answer, or with ctx's error
// when it ends.
func (l *Listener) wait(ctx context.Context) error {
	select {
	case <-l.accepted:
	case <-ctx.Done():
		return ctx.Err()
	}
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

func (l *Listener) anyBusy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		if c.state.Load() == busy {
			return true
		}
	}
	return false
}

// closeConns closes all connections, or those on which nobody waits for anything.
func (l *Listener) closeConns(idleOnly bool) {
	l.mu.Lock()
	conns := slices.Collect(maps.Keys(l.conns))
	l.mu.Unlock()
	for _, c := range conns {
		if c.state.CompareAndSwap(idle, ended) || !idleOnly {
			c.Close()
		}
	}
}

// track is an [http.Server] ConnState hook.
func track(c net.Conn, state http.ConnState) {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	now := idle
	if state == http.StateNew || state == http.StateActive {
		now = busy
	}
	c.(*conn).state.Store(now)
}
