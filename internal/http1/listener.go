// Package http1 sits between the network and net/http and makes plain requests
// cheap.
//
// Nearly every request is of the simplest kind: HTTP/1.1, a few header fields, a
// short body or none, all of it in one packet. This package reads and answers
// those requests directly (request.go defines which). At the first request of any
// other kind it hands the connection over to net/http permanently, with every byte
// received since the last response. So a request never means something different
// here than it means to net/http: it is either understood in full or left alone.
// Over TLS it is the same, above the encryption; HTTP/2 is net/http's from the start.
package http1

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Listener accepts connections, answers the plain requests on them and hands the
// other connections over to an [http.Server]. It tracks which of its connections
// are still owed a response.
type Listener struct {
	inner  net.Listener
	tls    *tls.Config // nil without TLS
	server *http.Server
	plain  func(target string) bool // nil if net/http serves every request
	log    *slog.Logger

	handovers chan net.Conn // to net/http
	failures  chan error    // permanent errors from inner.Accept, to net/http
	stopping  chan struct{} // closed when no more connections should be accepted
	stopped   chan struct{} // closed when the accept loop has returned
	closed    chan struct{} // closed when no more connections are handed over
	stop      func() error
	close     func() error
	queueTime time.Duration // maxQueueTime, except in tests
	writers   writers

	mu    sync.Mutex
	conns map[*conn]struct{}
}

// Listen returns a Listener for server to serve on, over TLS unless config is nil.
// Requests whose target plain rejects are left to net/http. If plain is nil, net/http
// reads every byte of every request. Failed accepts and the panics of handshakes and
// plain requests are logged at level Error.
//
// The Listener uses the server's Handler, ReadHeaderTimeout, WriteTimeout and
// IdleTimeout, where 0 means no timeout, and sets its ConnState. The server's other
// settings apply only to the requests that net/http serves, and its ReadTimeout to
// handshakes.
//
// A handler of plain requests must set Content-Type and must not use Flush, 1xx
// statuses or trailers. The response is sent when the handler returns, or earlier
// if it grows large. Nothing that a handler keeps can reach another request, unless
// the handler called the Reuse method of its writer, and except for the TLS state, which
// is the connection's, as in net/http.
func Listen(inner net.Listener, config *tls.Config, server *http.Server, plain func(target string) bool, log *slog.Logger) *Listener {
	l := &Listener{
		inner:     inner,
		tls:       config,
		server:    server,
		plain:     plain,
		log:       log,
		handovers: make(chan net.Conn),
		failures:  make(chan error),
		stopping:  make(chan struct{}),
		stopped:   make(chan struct{}),
		closed:    make(chan struct{}),
		conns:     map[*conn]struct{}{},
		queueTime: maxQueueTime,
		writers:   newWriters(),
	}
	l.stop = sync.OnceValue(func() error {
		close(l.stopping)
		return inner.Close()
	})
	l.close = sync.OnceValue(func() error {
		close(l.closed)
		return l.stop()
	})
	server.ConnState = trackState
	go l.acceptLoop()
	return l
}

const (
	minBackoff = 5 * time.Millisecond
	maxBackoff = 100 * time.Millisecond
	// acceptLogEvery limits how often failed accepts are logged.
	acceptLogEvery = time.Second
)

// acceptLoop accepts connections until the listener is closed. If accepting fails
// for a while, because there are no file descriptors left, it backs off itself:
// net/http's back-off would hold up every connection that is handed over.
func (l *Listener) acceptLoop() {
	defer close(l.stopped)
	var backoff time.Duration
	var logged time.Time
	for {
		raw, err := l.inner.Accept()
		if err != nil {
			if l.isStopping() {
				return // net/http keeps running for handed-over connections
			}
			if !isTemporary(err) {
				l.log.Error("accept failed", "err", err)
				l.fail(err)
				return
			}
			if time.Since(logged) >= acceptLogEvery {
				l.log.Error("accept failed: retrying until it works", "err", err)
				logged = time.Now()
			}
			backoff = min(max(2*backoff, minBackoff), maxBackoff)
			select {
			case <-time.After(backoff):
			case <-l.stopping:
				return
			}
			continue
		}
		backoff = 0
		c := newConn(raw, l)
		l.mu.Lock()
		l.conns[c] = struct{}{}
		l.mu.Unlock()
		go c.serve()
	}
}

func (l *Listener) isStopping() bool {
	select {
	case <-l.stopping:
		return true
	default:
		return false
	}
}

// isTemporary reports whether accepting may work again later. It is the same rule
// as net/http's.
func isTemporary(err error) bool {
	var temporary interface{ Temporary() bool }
	return errors.As(err, &temporary) && temporary.Temporary()
}

// fail makes the server's Serve return err.
func (l *Listener) fail(err error) {
	select {
	case l.failures <- err:
	case <-l.stopping:
	}
}

// Accept returns the next connection for net/http to serve.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.handovers:
		return c, nil
	case err := <-l.failures:
		return nil, err
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// handOver gives a connection to net/http.
func (l *Listener) handOver(c net.Conn) {
	select {
	case l.handovers <- c:
	case <-l.closed:
		c.Close()
	}
}

// Addr returns the address the Listener listens on.
func (l *Listener) Addr() net.Addr { return l.inner.Addr() }

// Close stops accepting connections and handing them over to net/http. Open
// connections stay open.
func (l *Listener) Close() error { return l.close() }

// maxQueueTime limits how long StopAccepting waits for connections to be accepted. A
// client that was turned away meanwhile should find the port closed when it tries
// again, after a second.
const maxQueueTime = 500 * time.Millisecond

// StopAccepting closes the port in such a way that no client loses a request by it:
// when a listening socket is closed, the system resets the connections that still
// wait to be accepted, on which requests may have been sent. So new connections are
// turned away first. Those being set up get the time handshake to complete, and
// they are accepted. This needs Linux and a listener without multipath TCP;
// otherwise some connections may be lost.
func (l *Listener) StopAccepting(handshake time.Duration) error {
	if !l.isStopping() && refuseNew(l.inner) {
		time.Sleep(handshake)
	}
	for start := time.Now(); hasQueue(l.inner) && time.Since(start) < l.queueTime; {
		time.Sleep(time.Millisecond)
	}
	return l.stop()
}

// Shutdown stops the listener and its server cleanly: it accepts no more
// connections, lets every running request finish and closes the connections. If
// ctx ends first, it cuts off the remaining requests and returns an error.
//
// [http.Server.Shutdown] waits only for requests it has already read. It silently
// drops one that it reads just after the call, on a connection accepted before.
// So Shutdown calls it only when no client is waiting for a response.
func (l *Listener) Shutdown(ctx context.Context) error {
	err := errors.Join(l.StopAccepting(0), l.drain(ctx))
	if err == nil {
		err = l.server.Shutdown(ctx)
	}
	if err != nil {
		// The sockets first: net/http would send a farewell over TLS, and wait for
		// one client after the other to take it.
		for _, c := range l.connections() {
			c.socket.Close()
		}
		l.server.Close()
	}
	return err
}

// drain returns when no connection is owed a response, or with ctx's error when
// it ends.
func (l *Listener) drain(ctx context.Context) error {
	select {
	case <-l.stopped:
	case <-ctx.Done():
		return ctx.Err()
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for l.closeIdle() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// closeIdle closes the idle connections that weren't handed over, so that no
// request can start on them, and reports whether any connection is still busy or
// being closed.
// net/http closes the idle connections it was given. A connection isn't idle if a
// request has arrived that its goroutine hasn't read yet.
func (l *Listener) closeIdle() (waiting bool) {
	for _, c := range l.connections() {
		arrived := c.state.Load() == idle && hasUnread(c.socket.Conn)
		if !arrived && !c.handedOver.Load() && c.state.CompareAndSwap(idle, ended) {
			go c.Close() // over TLS it may have to wait for the client
		}
		waiting = waiting || arrived || c.state.Load() != idle
	}
	return waiting
}

func (l *Listener) connections() []*conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.conns))
}

// trackState is an [http.Server] ConnState hook.
func trackState(c net.Conn, state http.ConnState) {
	now := idle
	if state == http.StateNew || state == http.StateActive {
		now = busy
	}
	connOf(c).state.Store(now)
}
