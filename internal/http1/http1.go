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

	passed    chan net.Conn // to net/http
	failed    chan error    // to net/http, of accepting
	stopping  chan struct{} // closed when nothing is to be accepted any more
	accepting chan struct{} // closed when nothing is
	closed    chan struct{} // closed when nothing is passed on any more
	stop      func() error
	close     func() error

	mu    sync.Mutex
	conns map[*conn]struct{}
}

// Listen makes a Listener for server to serve on. Requests for whose target plain
// is false are left to net/http. So are all if it is nil, as it has to be beneath
// TLS.
//
// It keeps to the server's handler and to ReadHeaderTimeout, WriteTimeout and
// IdleTimeout, of which 0 is none. ConnState is its own. What else a server can be
// told counts for the requests that are net/http's.
//
// A handler of plain requests says how it answers: it sets Content-Type, and does
// without Flush, 1xx and trailers. It does not change the request's URL or header,
// which are those of the next request too if that was sent alike. The answer is
// sent when the handler returns, or when it grows large.
func Listen(inner net.Listener, server *http.Server, plain func(target string) bool) *Listener {
	l := &Listener{
		inner:     inner,
		server:    server,
		plain:     plain,
		passed:    make(chan net.Conn),
		failed:    make(chan error),
		stopping:  make(chan struct{}),
		accepting: make(chan struct{}),
		closed:    make(chan struct{}),
		conns:     map[*conn]struct{}{},
	}
	l.stop = sync.OnceValue(func() error {
		close(l.stopping)
		return inner.Close()
	})
	l.close = sync.OnceValue(func() error {
		close(l.closed)
		return l.stop()
	})
	server.ConnState = track
	go l.accept()
	return l
}

func (l *Listener) accept() {
	defer close(l.accepting)
	for {
		raw, err := l.inner.Accept()
		if err != nil {
			select {
			case <-l.stopping: // net/http stays, for what is passed on to it
				return
			default:
			}
			// net/http knows what to do: ask again after a while, or give up.
			select {
			case l.failed <- err:
				continue
			case <-l.stopping:
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
func (l *Listener) Close() error { return l.close() }

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
		err = l.server.Shutdown(ctx)
	}
	if err != nil {
		l.server.Close()
		for _, c := range l.all() {
			c.Close()
		}
	}
	return err
}

// wait returns when no connection owes anybody an answer, or with ctx's error
// when it ends.
func (l *Listener) wait(ctx context.Context) error {
	select {
	case <-l.accepting:
	case <-ctx.Done():
		return ctx.Err()
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for l.endIdle() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// endIdle closes our connections on which nobody waits for anything, so that
// nobody can begin to, and reports whether somebody does on another. net/http
// takes its leave of those that are its own.
func (l *Listener) endIdle() (waiting bool) {
	for _, c := range l.all() {
		if !c.passed.Load() && c.state.CompareAndSwap(idle, ended) {
			c.Close()
		}
		waiting = waiting || c.state.Load() == busy
	}
	return waiting
}

func (l *Listener) all() []*conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.conns))
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
