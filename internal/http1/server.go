// Package http1 serves an http.Handler over plain TCP faster than net/http does.
//
// Nearly every request is of the simplest kind: HTTP/1.1, a few header fields, a short
// body or none, all in one packet. Such a request is called simple here; request.go
// defines which are. This package reads and serves simple requests directly. At the
// first other one it hands the connection over to net/http for good, with every byte
// received since the last response. So a request never means something different here
// than it does to net/http: it is either understood completely or left alone.
package http1

import (
	"context"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Server serves the simple requests on a listener and leaves other connections to an
// [http.Server]. It knows which connections still await a response.
type Server struct {
	inner  net.Listener
	http   *http.Server
	serves func(target string) bool
	log    *slog.Logger

	handovers chan net.Conn // to net/http
	stopping  chan struct{} // closed when no more connections should be accepted
	stopped   chan struct{} // closed when the accept loop has returned
	closed    chan struct{} // closed when no more connections are handed over
	stop      func()
	close     func()

	mu    sync.Mutex
	conns map[*conn]bool
}

// NewServer returns a Server for connections to inner, which aren't encrypted. Requests
// whose target serves rejects are left to net/http. Failed accepts and panics in simple
// requests are logged at level Error.
//
// The Server uses the Handler, ReadHeaderTimeout, WriteTimeout and IdleTimeout of
// server, where 0 means no timeout, and sets its ConnState. The other settings apply
// only to requests that net/http serves.
//
// A handler of simple requests must set Content-Type and must not use Flush, 1xx
// statuses or trailers. The response is sent when the handler returns, or from the
// first large write on. The request's context ends when the handler returns, not when the client
// disconnects. Nothing a handler keeps can reach another request.
func NewServer(inner net.Listener, server *http.Server, serves func(target string) bool, log *slog.Logger) *Server {
	s := &Server{
		inner:     inner,
		http:      server,
		serves:    serves,
		log:       log,
		handovers: make(chan net.Conn),
		stopping:  make(chan struct{}),
		stopped:   make(chan struct{}),
		closed:    make(chan struct{}),
		conns:     map[*conn]bool{},
	}
	s.stop = sync.OnceFunc(func() {
		close(s.stopping)
		s.endAccept()
	})
	s.close = sync.OnceFunc(func() {
		s.stop()
		close(s.closed)
	})
	server.ConnState = s.trackState
	go s.acceptLoop()
	return s
}

// Serve serves until Shutdown, when it returns [http.ErrServerClosed].
func (s *Server) Serve() error { return s.http.Serve(handoverListener{s}) }

const (
	// acceptRetry is the time between two accepts that fail.
	acceptRetry = 20 * time.Millisecond
	// acceptLogEvery limits how often failed accepts are logged.
	acceptLogEvery = time.Second
)

// acceptLoop accepts connections until the listener is closed. If accepting fails for a
// while because no file descriptors are left, it retries itself: net/http's back-off
// would delay every connection that is handed over.
func (s *Server) acceptLoop() {
	defer close(s.stopped)
	defer s.inner.Close()
	var logged time.Time
	for {
		socket, err := s.inner.Accept()
		if err == nil {
			c := newConn(socket, s)
			s.mu.Lock()
			s.conns[c] = true
			s.mu.Unlock()
			go c.serve()
			continue
		}
		select {
		case <-s.stopping:
			return // net/http keeps running for handed-over connections
		case <-time.After(acceptRetry):
		}
		if time.Since(logged) >= acceptLogEvery {
			s.log.Error("accept failed: retrying until it works", "err", err)
			logged = time.Now()
		}
	}
}

// acceptLast is how much time the accept loop has for the connections that are already
// waiting when the server stops.
const acceptLast = 10 * time.Millisecond

// endAccept makes the accept loop return. The loop closes the port once it has accepted
// the connections that are waiting: the system resets those that remain, on which
// requests may already have been sent.
func (s *Server) endAccept() {
	l, ok := s.inner.(interface{ SetDeadline(time.Time) error })
	if !ok || l.SetDeadline(time.Now().Add(acceptLast)) != nil {
		s.inner.Close()
	}
}

// forget removes a closed connection.
func (s *Server) forget(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// handOver gives a connection to net/http.
func (s *Server) handOver(c *conn) {
	select {
	case s.handovers <- c:
	case <-s.closed:
		c.Close()
		s.forget(c)
	}
}

// handoverListener is the listener that net/http accepts connections from.
type handoverListener struct{ *Server }

func (l handoverListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.handovers:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l handoverListener) Addr() net.Addr { return l.inner.Addr() }

// Close stops accepting connections and handing them over. Open connections stay open.
func (l handoverListener) Close() error {
	l.close()
	return nil
}

// Shutdown stops the server cleanly: it accepts the connections that are waiting, closes
// the port, lets every running request finish and closes the connections. If ctx ends
// first, it cuts off the remaining requests and returns an error.
//
// [http.Server.Shutdown] waits only for requests it has already read. It silently drops
// a request that it reads just after the call, on a connection accepted before. So
// Shutdown calls it only when no client is waiting for a response.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stop()
	err := s.drain(ctx)
	if err == nil {
		err = s.http.Shutdown(ctx)
	}
	if err != nil {
		for _, c := range s.connections() {
			c.Close()
		}
		s.http.Close()
	}
	return err
}

// drain returns when no connection awaits a response, or with ctx's error when ctx
// ends.
func (s *Server) drain(ctx context.Context) error {
	select {
	case <-s.stopped:
	case <-ctx.Done():
		return ctx.Err()
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for s.closeIdle() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// closeIdle closes the idle connections that weren't handed over, so that no request
// can start on them. It reports whether any connection is still busy. net/http closes
// the idle connections that were handed over to it.
func (s *Server) closeIdle() (waiting bool) {
	for _, c := range s.connections() {
		if !c.handedOver.Load() && c.state.CompareAndSwap(idle, ended) {
			c.Close()
		}
		waiting = waiting || c.state.Load() == busy
	}
	return waiting
}

func (s *Server) connections() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.conns))
}

// trackState is an [http.Server] ConnState hook.
func (s *Server) trackState(served net.Conn, state http.ConnState) {
	c := served.(*conn)
	switch state {
	case http.StateNew, http.StateActive:
		c.state.Store(busy)
	case http.StateClosed:
		s.forget(c)
		fallthrough
	default:
		c.state.Store(idle)
	}
}
