package http1

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// The states of a connection.
const (
	idle  int32 = iota // no client is waiting for a response
	busy               // a request is running or expected right away
	ended              // closed while idle
)

// maxSimple limits the size of a simple request, header and body, in bytes.
const maxSimple = 4 << 10

// conn is a connection of a [Server]. It serves requests directly until one
// arrives that isn't simple. From then on net/http reads from it and writes to it.
type conn struct {
	net.Conn
	server *Server
	state  atomic.Int32

	buf        []byte // the only memory kept between requests
	start, end int    // the unanswered bytes in buf
	remote     string
	served     bool // at least one response was sent
	posted     bool // the last request was a POST

	// A request's time starts when its connection is accepted or, if it isn't the first,
	// when its first byte arrives. Zero: not started yet.
	started time.Time

	handedOver atomic.Bool // net/http serves it
	// late is the time already spent on the request. net/http's first two deadlines
	// after the handover, for the header and for the whole request, are moved forward
	// by it.
	late      time.Duration
	deadlines atomic.Int32 // set since the handover
}

func newConn(socket net.Conn, s *Server) *conn {
	c := &conn{Conn: socket, server: s, started: time.Now()}
	c.state.Store(busy) // its first request is expected right away
	return c
}

// serve serves requests until the connection ends or is handed over.
func (c *conn) serve() {
	defer func() { // also if a handler called runtime.Goexit
		if v := recover(); v != nil && v != http.ErrAbortHandler {
			c.server.log.Error("panic while serving a client", "peer", c.RemoteAddr(), "panic", v, "stack", string(debug.Stack()))
		}
		if !c.handedOver.Load() {
			c.Close()
			c.server.forget(c)
		}
	}()
	if c.serveSimple() {
		c.handOver()
	}
}

// handOver hands the connection over to net/http.
func (c *conn) handOver() {
	if !c.started.IsZero() {
		c.late = time.Since(c.started)
	}
	c.handedOver.Store(true)
	c.server.handOver(c)
}

// serveSimple serves simple requests until the connection ends or another kind of
// request arrives, and reports whether one did.
func (c *conn) serveSimple() (other bool) {
	c.buf = make([]byte, maxSimple)
	c.remote = c.RemoteAddr().String()
	for c.awaitRequest() {
		r, size, ok := parse(c.buf[c.start:c.end], c.server.serves)
		if !ok || r.ContentLength > int64(c.end-c.start-size) {
			return true
		}
		c.start += size
		body := c.buf[c.start:][:r.ContentLength]
		if !c.handle(&r, body) {
			return false
		}
		c.start += len(body)
		c.served, c.posted, c.started = true, r.Method == http.MethodPost, time.Time{}
	}
	return false
}

// awaitRequest waits for the next request to start arriving. It doesn't wait for the
// rest: a request that arrives in pieces isn't simple.
func (c *conn) awaitRequest() bool {
	c.end = copy(c.buf, c.buf[c.start:c.end])
	c.start = 0
	if !c.served {
		c.SetReadDeadline(deadlineAfter(c.started, c.server.http.ReadHeaderTimeout))
		return c.end > 0 || c.fill()
	}
	// Like net/http, wait for four bytes of a further request, and skip the empty
	// line that old browsers send after the body of a POST.
	idleEnd := deadlineAfter(time.Now(), c.server.http.IdleTimeout)
	c.SetReadDeadline(idleEnd)
	for c.end < 4 {
		if c.end > 0 && c.started.IsZero() {
			c.started = time.Now()
			end := deadlineAfter(c.started, c.server.http.ReadHeaderTimeout)
			if !end.IsZero() && (idleEnd.IsZero() || end.Before(idleEnd)) {
				c.SetReadDeadline(end)
			}
		}
		c.state.Store(idle)
		if !c.fill() || !c.state.CompareAndSwap(idle, busy) {
			return false
		}
	}
	for c.posted && c.start < 4 && (c.buf[c.start] == '\r' || c.buf[c.start] == '\n') {
		c.start++
	}
	return true
}

func (c *conn) fill() bool {
	n, _ := c.Conn.Read(c.buf[c.end:])
	c.end += n
	return n > 0
}

// deadlineAfter returns the end of a timeout, or the zero time if there is none.
func deadlineAfter(from time.Time, timeout time.Duration) time.Time {
	if timeout <= 0 {
		return time.Time{}
	}
	return from.Add(timeout)
}

// usualFields is how many header fields most responses have. Growing the map for them
// would take 3 % of a request's time.
const usualFields = 12

// handle runs the handler for the request that was just parsed, sends the response and
// reports whether the connection can be used for another request.
func (c *conn) handle(r *http.Request, body []byte) bool {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r = r.WithContext(ctx)
	r.RemoteAddr, r.Body = c.remote, http.NoBody
	if len(body) > 0 {
		r.Body = io.NopCloser(bytes.NewReader(bytes.Clone(body)))
	}
	w := &writer{
		conn:     c,
		header:   make(http.Header, usualFields),
		method:   r.Method,
		declared: -1,
		buffer:   buffers.Get().(*buffer),
	}
	defer w.detach()
	c.server.http.Handler.ServeHTTP(w, r)
	return w.finish()
}

// CloseWrite lets net/http close its side of the connection first.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// Read is called by net/http after the handover. It first returns the bytes received
// before.
func (c *conn) Read(b []byte) (int, error) {
	if c.start < c.end {
		n := copy(b, c.buf[c.start:c.end])
		c.start += n
		return n, nil
	}
	c.buf = nil
	return c.Conn.Read(b)
}

func (c *conn) SetReadDeadline(t time.Time) error {
	if c.late > 0 && !t.IsZero() && c.deadlines.Add(1) <= 2 {
		t = t.Add(-c.late)
	}
	return c.Conn.SetReadDeadline(t)
}

func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}
