// Package http1 serves an http.Handler faster than net/http does.
//
// Nearly every request is of the simplest kind: HTTP/1.1, a few header fields, a short
// body or none, all in one packet. Such a request is called plain here; request.go defines
// which are. This package reads and answers plain requests directly. At the first one that
// isn't plain it hands the connection over to net/http for good, with every byte received
// since the last response. So a request never means something different here than it does
// to net/http: it is either understood completely or left alone. The same applies over
// TLS, above the encryption. net/http serves all of HTTP/2.
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

// Server answers the plain requests on a listener and leaves other connections to an
// [http.Server]. It knows which connections still await a response.
type Server struct {
	// Handshake is how long Shutdown waits for connections that are being set up.
	Handshake time.Duration

	inner  net.Listener
	tls    *tls.Config // nil without TLS
	http   *http.Server
	serves func(target string) bool
	log    *slog.Logger

	handovers chan net.Conn // to net/http
	failures  chan error    // permanent errors from inner.Accept, to net/http
	stopping  chan struct{} // closed when no more connections should be accepted
	stopped   chan struct{} // closed when the accept loop has returned
	closed    chan struct{} // closed when no more connections are handed over
	stop      func() error
	close     func() error
	queueTime time.Duration // maxQueueTime, except in tests

	mu    sync.Mutex
	conns map[net.Conn]*conn // by their sockets
}

// NewServer returns a Server for connections to inner, over TLS unless config is nil.
// Requests whose target serves rejects are left to net/http. Failed accepts, and panics
// in handshakes and plain requests, are logged at level Error.
//
// The Server uses the Handler, ReadHeaderTimeout, WriteTimeout and IdleTimeout of
// server, where 0 means no timeout, and sets its ConnState. ReadTimeout also applies to
// handshakes. The other settings apply only to requests that net/http serves.
//
// A handler of plain requests must set Content-Type and must not use Flush, 1xx
// statuses or trailers. The response is sent when the handler returns, or earlier if it
// grows large. Nothing a handler keeps can reach another request, except the TLS state,
// which belongs to the connection, as in net/http.
func NewServer(inner net.Listener, config *tls.Config, server *http.Server, serves func(target string) bool, log *slog.Logger) *Server {
	s := &Server{
		inner:     inner,
		tls:       config,
		http:      server,
		serves:    serves,
		log:       log,
		handovers: make(chan net.Conn),
		failures:  make(chan error),
		stopping:  make(chan struct{}),
		stopped:   make(chan struct{}),
		closed:    make(chan struct{}),
		conns:     map[net.Conn]*conn{},
		queueTime: maxQueueTime,
	}
	s.stop = sync.OnceValue(func() error {
		close(s.stopping)
		return inner.Close()
	})
	s.close = sync.OnceValue(func() error {
		close(s.closed)
		return s.stop()
	})
	server.ConnState = s.trackState
	go s.acceptLoop()
	go s.watchClients()
	return s
}

// Serve serves until Shutdown, when it returns [http.ErrServerClosed], or until the
// listener fails.
func (s *Server) Serve() error { return s.http.Serve(handoverListener{s}) }

const (
	minBackoff = 5 * time.Millisecond
	maxBackoff = 100 * time.Millisecond
	// acceptLogEvery limits how often failed accepts are logged.
	acceptLogEvery = time.Second
)

// acceptLoop accepts connections until the listener is closed. If accepting fails for a
// while because no file descriptors are left, it backs off itself: net/http's back-off
// would delay every connection that is handed over.
func (s *Server) acceptLoop() {
	defer close(s.stopped)
	var backoff time.Duration
	var logged time.Time
	for {
		raw, err := s.inner.Accept()
		if err == nil {
			backoff = 0
			c := newConn(raw, s)
			s.mu.Lock()
			s.conns[raw] = c
			s.mu.Unlock()
			go c.serve()
			continue
		}
		if s.isStopping() {
			return // net/http keeps running for handed-over connections
		}
		if !isTemporary(err) {
			s.log.Error("accept failed", "err", err)
			s.fail(err)
			return
		}
		if time.Since(logged) >= acceptLogEvery {
			s.log.Error("accept failed: retrying until it works", "err", err)
			logged = time.Now()
		}
		backoff = min(max(2*backoff, minBackoff), maxBackoff)
		select {
		case <-time.After(backoff):
		case <-s.stopping:
			return
		}
	}
}

func (s *Server) isStopping() bool {
	select {
	case <-s.stopping:
		return true
	default:
		return false
	}
}

// isTemporary reports whether accepting may work again later, by the same rule as
// net/http.
func isTemporary(err error) bool {
	var temporary interface{ Temporary() bool }
	return errors.As(err, &temporary) && temporary.Temporary()
}

// fail makes Serve return err.
func (s *Server) fail(err error) {
	select {
	case s.failures <- err:
	case <-s.stopping:
	}
}

// forget removes a closed connection.
func (s *Server) forget(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c.socket)
}

// handOver gives a connection to net/http.
func (s *Server) handOver(c net.Conn) {
	select {
	case s.handovers <- c:
	case <-s.closed:
		c.Close()
		s.forget(s.connOf(c))
	}
}

// handoverListener is the listener that net/http accepts connections from.
type handoverListener struct{ *Server }

func (l handoverListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.handovers:
		return c, nil
	case err := <-l.failures:
		return nil, err
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l handoverListener) Addr() net.Addr { return l.inner.Addr() }

// Close stops accepting connections and handing them over. Open connections stay open.
func (l handoverListener) Close() error { return l.close() }

// watchEvery is how often watchClients checks the connections.
const watchEvery = 100 * time.Millisecond

// watchClients ends the contexts of plain requests whose clients have disconnected.
// net/http does this with a goroutine that reads from the connection while the handler
// runs. Here one goroutine checks the requests that were already running at its
// previous check, because nearly all requests finish sooner. This works only on Linux;
// elsewhere such requests run to the end.
func (s *Server) watchClients() {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-s.closed:
			return
		}
		for _, c := range s.connections() {
			running := c.running.Load()
			if running != nil && running == c.watched && hasLeft(c.socket) {
				(*running)()
			}
			c.watched = running
		}
	}
}

// maxQueueTime limits how long Shutdown waits for connections to be accepted. A client
// turned away meanwhile should find the port closed when it retries after a second.
const maxQueueTime = 500 * time.Millisecond

// stopAccepting closes the port without losing requests. When a listening socket is
// closed, the system resets connections that are still waiting to be accepted, on which
// requests may already have been sent. So it first turns new connections away, gives
// those being set up the time Handshake to complete, and accepts them. This needs Linux
// and a listener without multipath TCP; otherwise some connections may be lost.
func (s *Server) stopAccepting() error {
	if !s.isStopping() && refuseNew(s.inner) {
		time.Sleep(s.Handshake)
	}
	for start := time.Now(); hasQueue(s.inner) && time.Since(start) < s.queueTime; {
		time.Sleep(time.Millisecond)
	}
	return s.stop()
}

// Shutdown stops the server cleanly: it accepts no more connections, lets every running
// request finish and closes the connections. If ctx ends first, it cuts off the remaining
// requests and returns an error.
//
// [http.Server.Shutdown] waits only for requests it has already read. It silently drops
// a request that it reads just after the call, on a connection accepted before. So
// Shutdown calls it only when no client is waiting for a response.
func (s *Server) Shutdown(ctx context.Context) error {
	if err := s.stopAccepting(); err != nil {
		s.log.Error("close the port", "err", err)
	}
	err := s.drain(ctx)
	if err == nil {
		err = s.http.Shutdown(ctx)
	}
	if err != nil {
		// Close the sockets first: over TLS, net/http would send each client a closing
		// message and wait for it to be received, one client after the other.
		for _, c := range s.connections() {
			c.socket.Close()
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
// can start on them. It reports whether any connection is still busy or being closed. A
// connection isn't idle if a request has arrived that its goroutine hasn't read yet.
// net/http closes the idle connections that were handed over to it.
func (s *Server) closeIdle() (waiting bool) {
	for _, c := range s.connections() {
		arrived := c.state.Load() == idle && hasUnread(c.socket)
		if !arrived && !c.handedOver.Load() && c.state.CompareAndSwap(idle, ended) {
			go c.Close() // over TLS it may have to wait for the client
		}
		waiting = waiting || arrived || c.state.Load() != idle
	}
	return waiting
}

func (s *Server) connections() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.conns))
}

// trackState is an [http.Server] ConnState hook.
func (s *Server) trackState(served net.Conn, state http.ConnState) {
	c := s.connOf(served)
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

// connOf returns the connection that forServer gave to net/http.
func (s *Server) connOf(served net.Conn) *conn {
	switch served := served.(type) {
	case *tls.Conn:
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.conns[served.NetConn()]
	case secureConn:
		return served.conn
	}
	return served.(*conn)
}
