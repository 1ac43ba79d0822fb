package http1

import (
	"bytes"
	"errors"
	"io"
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

// conn is a connection of a listener's.
//
// net/http sets half a dozen deadlines a request, each of which moves a timer,
// and nearly all of which are later than the one before. Here a later deadline
// is only remembered. When the timer goes off too early, it is set anew.
type conn struct {
	net.Conn
	listener    *Listener
	state       atomic.Int32
	read, write deadline

	buf        []byte
	start, end int       // of what is in buf and was not answered yet
	began      time.Time // when the first of that was there
	fresh      bool      // nothing was read yet
	served     bool      // there was an answer
	parser     parser
	answer     answer
}

func newConn(raw net.Conn, l *Listener) *conn {
	c := &conn{
		Conn:     raw,
		listener: l,
		read:     deadline{arm: raw.SetReadDeadline},
		write:    deadline{arm: raw.SetWriteDeadline},
		fresh:    true,
	}
	c.state.Store(busy) // its first request is on its way
	return c
}

// serve answers requests until the connection is over or net/http's.
func (c *conn) serve() {
	if c.listener.plain == nil || c.servePlain() {
		c.parser, c.answer = parser{}, answer{}
		c.listener.pass(c)
		return
	}
	c.Close()
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
		size, err := c.awaitHead()
		if err != nil {
			return err == io.EOF && c.begun()
		}
		came := c.buf[c.start:c.end]
		r, ok := c.parser.parse(came[:size])
		if !ok || len(came)-size < r.length {
			return true
		}
		if !c.handle(r, came[size:size+r.length]) {
			return false
		}
		c.served = true
		c.start += size + r.length
		if c.start < c.end {
			c.began = time.Now()
		}
	}
}

// begun reports whether what is there is the beginning of a request, which
// net/http answers though it ends early. Of a second one it wants to see 4 bytes.
func (c *conn) begun() bool { return c.end-c.start >= 4 || !c.served && c.start < c.end }

var headEnd = []byte("\r\n\r\n")

// awaitHead returns the size of the next request's head once it is there, or of
// all that is there if that is too much for a plain one.
func (c *conn) awaitHead() (size int, err error) {
	for {
		came := c.buf[c.start:c.end]
		if i := bytes.Index(came, headEnd); i >= 0 {
			return i + len(headEnd), nil
		}
		if len(came) == maxPlain {
			return maxPlain, nil
		}
		if err := c.fill(); err != nil {
			return 0, err
		}
	}
}

// fill reads more of a request, or the first of it.
func (c *conn) fill() error {
	first := c.start == c.end
	c.end = copy(c.buf, c.buf[c.start:c.end])
	c.start = 0
	switch server := c.listener.server; {
	case c.fresh:
		c.fresh = false
		c.SetReadDeadline(time.Now().Add(server.ReadHeaderTimeout))
	case first:
		c.state.Store(idle)
		c.SetReadDeadline(time.Now().Add(server.IdleTimeout))
	default:
		c.SetReadDeadline(c.began.Add(server.ReadHeaderTimeout))
	}
	n, err := c.receive(c.buf[c.end:])
	if n == 0 {
		return err
	}
	if !c.state.CompareAndSwap(idle, busy) && c.state.Load() == ended {
		return net.ErrClosed
	}
	c.end += n
	if first {
		c.began = time.Now()
	}
	return nil
}

// handle answers a request, and reports whether another may follow.
func (c *conn) handle(r request, body []byte) bool {
	server := c.listener.server
	c.SetWriteDeadline(time.Now().Add(server.WriteTimeout))
	watch := &watch{conn: c}
	defer watch.end()
	c.answer.reset(r.method)
	server.Handler.ServeHTTP(&c.answer, r.forHandler(watch, body))
	return c.answer.finish()
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

// Read is net/http's, once the connection is. It begins with what came before.
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
