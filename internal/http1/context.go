package http1

import (
	"context"
	"sync"
	"time"
)

// requestContext is the context of a request. It ends with the request, or when
// the client disconnects. Noticing that takes a read in the background, which
// starts at the first call of Done (Err doesn't start it): few requests need it.
type requestContext struct {
	conn *conn

	mu    sync.Mutex
	over  bool
	watch *watch // nil until Done is called
}

// watch is the part of a requestContext that few requests need.
type watch struct {
	context.Context
	cancel   context.CancelFunc
	finished chan int // receives the number of bytes read; nil if there is no read
}

func (x *requestContext) Deadline() (time.Time, bool) { return time.Time{}, false }

func (x *requestContext) Done() <-chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.watch != nil {
		return x.watch.Done()
	}
	w := new(watch)
	w.Context, w.cancel = context.WithCancel(context.Background())
	x.watch = w
	if x.over { // the connection may belong to another request by now
		w.cancel()
	} else if room := x.conn.buf[x.conn.end:]; len(room) > 0 {
		w.finished = make(chan int, 1)
		x.conn.SetReadDeadline(time.Time{}) // the request has been read
		go w.awaitClient(x.conn, room)
	}
	return w.Done()
}

// awaitClient returns when the client sends something or disconnects, or when the
// request ends. Bytes that arrive are the start of the next request.
func (w *watch) awaitClient(c *conn, room []byte) {
	n, err := c.Conn.Read(room)
	if n == 0 && err != nil {
		w.cancel()
	}
	w.finished <- n
}

func (x *requestContext) Err() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.watch != nil:
		return x.watch.Err()
	case x.over:
		return context.Canceled
	}
	return nil
}

// Value lets package context find the inner context, so that it doesn't need a
// goroutine to watch this one.
func (x *requestContext) Value(key any) any {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.watch != nil {
		return x.watch.Value(key)
	}
	return nil
}

// end is called when the handler has returned. It reports whether Done was called.
func (x *requestContext) end() (watched bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.over = true
	if x.watch == nil {
		return false
	}
	if x.watch.finished != nil {
		x.conn.SetReadDeadline(time.Unix(1, 0)) // interrupts the read
		x.conn.end += <-x.watch.finished
	}
	x.watch.cancel()
	return true
}
