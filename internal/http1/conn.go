package http1

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// The states of a connection.
const (
	idle  int32 = iota // no client is waiting for a response
	busy               // a request is running or expected right away
	ended              // it was closed while it was idle
)

// maxPlain limits the size of a plain request, header and body, in bytes.
const maxPlain = 4 << 10

// conn is a connection of a [Listener]. It serves requests directly until one
// arrives that isn't plain. From then on net/http reads from it and writes to it.
type conn struct {
	net.Conn // the socket, or TLS on top of it
	socket   socket
	listener *Listener
	state    atomic.Int32
	secured  *tls.ConnectionState // nil without TLS, or without HTTP/1 over it

	buf        []byte
	start, end int  // the bytes in buf that are not answered yet
	served     bool // at least one response was sent
	posted     bool // the last request was a POST
	parser     parser
	response   response

	// The time of a request starts when its connection is accepted, over TLS when the
	// handshake is done, or, if it isn't the first, when its first byte arrives.
	// started is zero if that was just now.
	started time.Time

	handedOver atomic.Bool // net/http serves it
	// net/http's first deadlines after the handover, one for the header and one for
	// the whole request, are late by the time that the request already took.
	late      time.Duration
	deadlines atomic.Int32 // set since the handover
}

func newConn(raw net.Conn, l *Listener) *conn {
	c := &conn{listener: l, started: time.Now()}
	c.socket = socket{
		Conn:  raw,
		conn:  c,
		read:  deadline{arm: raw.SetReadDeadline},
		write: deadline{arm: raw.SetWriteDeadline},
	}
	c.Conn = &c.socket
	if l.tls != nil {
		c.Conn = tls.Server(&c.socket, l.tls)
	}
	c.state.Store(busy) // its first request is expected right away
	return c
}

// serve answers requests until the connection ends or is handed over.
func (c *conn) serve() {
	defer func() { // also if a handler called runtime.Goexit, or the handshake panicked
		if v := recover(); v != nil && v != http.ErrAbortHandler {
			c.listener.log.Error("panic while serving a client", "peer", c.RemoteAddr(), "panic", v, "stack", string(debug.Stack()))
		}
		if !c.handedOver.Load() {
			c.Close()
		}
	}()
	if c.listener.plain != nil && c.handshake() && !c.servePlain() {
		return
	}
	c.leave()
}

// leave hands the connection over to net/http. It isn't part of serve, because what it
// needs of the stack would be taken as long as the connection lasts.
//
//go:noinline
func (c *conn) leave() {
	c.parser, c.response = parser{}, response{}
	if !c.started.IsZero() {
		c.late = time.Since(c.started)
	}
	c.handedOver.Store(true)
	c.listener.handOver(c.forServer())
}

// servePlain answers plain requests until the connection ends or another kind of
// request arrives, and reports whether one did.
func (c *conn) servePlain() (other bool) {
	c.buf = make([]byte, maxPlain)
	c.parser.init(c)
	c.response.conn = c
	for {
		if !c.awaitRequest() {
			return false
		}
		r, size, ok := c.parser.parse(c.buf[c.start:c.end])
		if !ok {
			return true
		}
		c.handle(r)
		if !c.response.finish() {
			return false
		}
		c.start += size
		c.served, c.posted, c.started = true, r.method == http.MethodPost, time.Time{}
	}
}

// awaitRequest waits for the next request to arrive. It doesn't wait for all of
// it: a request that doesn't arrive in one piece isn't plain.
func (c *conn) awaitRequest() bool {
	c.end = copy(c.buf, c.buf[c.start:c.end])
	c.start = 0
	if !c.served {
		c.SetReadDeadline(deadlineAfter(c.started, c.listener.server.ReadHeaderTimeout))
		return c.end > 0 || c.fill()
	}
	// Like net/http, wait for four bytes of a further request, and skip the empty
	// line that old browsers send after the body of a POST.
	idleEnd := deadlineAfter(c.response.began, c.listener.server.IdleTimeout)
	c.SetReadDeadline(idleEnd)
	for c.end < 4 {
		if c.end > 0 && c.started.IsZero() {
			c.started = time.Now()
			c.SetReadDeadline(earlier(idleEnd, deadlineAfter(c.started, c.listener.server.ReadHeaderTimeout)))
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

// earlier returns the earlier of two deadlines, where the zero time means none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// exchange is everything that a handler gets for one request. Each request has its
// own, so that nothing a handler keeps, and uses after it has returned, can reach
// another request. Only if the handler keeps nothing, and says so with Reuse, does
// another request get the same one. Its size is limited by TestExchangeSize.
type exchange struct {
	context requestContext
	writer  writer
	request http.Request
	url     url.URL
	values  [7]string   // of the request's header, if they fit
	header  http.Header // the request's, if its values fit
}

// exchanges can be used again: they are empty, except for an empty header.
var exchanges = sync.Pool{New: func() any { return new(exchange) }}

// end is called when the handler has returned.
func (x *exchange) end() {
	reuse := x.writer.detach()
	if watched := x.context.end(); reuse && !watched {
		clear(x.header)
		*x = exchange{header: x.header}
		exchanges.Put(x)
	}
}

// handle runs the handler for a request.
func (c *conn) handle(r request) {
	c.response.reset(r.method)
	x := exchanges.Get().(*exchange)
	x.context.conn = c
	x.writer.response = &c.response
	c.parser.forHandler(x, r)
	defer x.end()
	c.listener.server.Handler.ServeHTTP(&x.writer, &x.request)
}

// CloseWrite lets net/http close its side of the connection first.
func (c *conn) CloseWrite() error { return closeWrite(c.Conn) }

// Read is called by net/http after the handover. It starts with the bytes that
// were received before.
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
	return c.socket.SetReadDeadline(t)
}

func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}
