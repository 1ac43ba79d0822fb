package http1

import (
	"errors"
	"log"
	"net"
	"net/http"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// What a connection is doing.
const (
	idle  int32 = iota // nobody waits for an answer
	busy               // somebody does, or is about to ask
	ended              // it was closed while it was idle
)

// maxPlain bounds a plain request, header and body, in bytes.
const maxPlain = 4 << 10

// conn is a connection of a listener's. It serves itself until a request comes
// that is not plain. From then on it is what net/http reads from and writes to.
type conn struct {
	net.Conn
	listener    *Listener
	state       atomic.Int32
	read, write deadline

	buf        []byte
	start, end int  // of what is in buf and was not answered yet
	served     bool // there was an answer
	posted     bool // the last one was to a POST
	parser     parser
	answer     answer

	passed atomic.Bool // it is net/http's
}

func newConn(raw net.Conn, l *Listener) *conn {
	c := &conn{
		Conn:     raw,
		listener: l,
		read:     deadline{arm: raw.SetReadDeadline},
		write:    deadline{arm: raw.SetWriteDeadline},
	}
	c.state.Store(busy) // its first request is on its way
	return c
}

// serve answers requests until the connection is over or net/http's.
func (c *conn) serve() {
	defer func() { // whatever a handler did to its goroutine
		if !c.passed.Load() {
			c.Close()
		}
	}()
	if c.listener.plain == nil || c.servePlain() {
		c.parser, c.answer = parser{}, answer{}
		c.passed.Store(true)
		c.listener.pass(c)
	}
}

// servePlain answers plain requests, and reports whether one of another kind
// came.
func (c *conn) servePlain() (other bool) {
	defer func() {
		if v := recover(); v != nil {
			other = false
			if v != http.ErrAbortHandler {
				c.listener.logf("panic serving %v: %v\n%s", c.RemoteAddr(), v, debug.Stack())
			}
		}
	}()
	c.buf = make([]byte, maxPlain)
	c.parser.init(c)
	c.answer.init(c)
	for {
		if !c.await() {
			return false
		}
		r, size, ok := c.parser.parse(c.buf[c.start:c.end])
		if !ok {
			return true
		}
		c.handle(r)
		if !c.answer.finish() {
			return false
		}
		c.start += size
		c.served, c.posted = true, r.method == http.MethodPost
	}
}

// await waits for the next request. It does not wait for all of it: one that does
// not come in a piece is not plain.
func (c *conn) await() bool {
	c.end = copy(c.buf, c.buf[c.start:c.end])
	c.start = 0
	if !c.served {
		c.SetReadDeadline(in(c.listener.server.ReadHeaderTimeout, time.Now()))
		return c.end > 0 || c.fill()
	}
	// Of a further request, net/http too looks at four bytes first, and lets old
	// browsers end the body of a POST with an empty line.
	c.SetReadDeadline(in(c.listener.server.IdleTimeout, c.answer.began))
	for c.end < 4 {
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
	n, _ := c.receive(c.buf[c.end:])
	c.end += n
	return n > 0
}

// in is a deadline so long from a time, or none.
func in(timeout time.Duration, from time.Time) time.Time {
	if timeout <= 0 {
		return time.Time{}
	}
	return from.Add(timeout)
}

// handle has the handler answer a request.
func (c *conn) handle(r request) {
	watch := &watch{conn: c}
	defer watch.end()
	c.answer.reset(r.method)
	c.listener.server.Handler.ServeHTTP(&c.answer, c.parser.forHandler(r, watch))
}

func (l *Listener) logf(format string, args ...any) {
	if l.server.ErrorLog != nil {
		l.server.ErrorLog.Printf("http1: "+format, args...)
	} else {
		log.Printf("http1: "+format, args...)
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

// Read is net/http's. It begins with what came before the connection was.
func (c *conn) Read(b []byte) (int, error) {
	if c.start < c.end {
		n := copy(b, c.buf[c.start:c.end])
		c.start += n
		return n, nil
	}
	c.buf = nil
	return c.receive(b)
}

func (c *conn) receive(b []byte) (int, error) {
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
