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

	mu       sync.Mutex
	over     bool
	inner    context.Context // nil until Done is called
	cancel   context.CancelFunc
	finished chan int // receives the number of bytes read; nil if there is no read
}

func (x *requestContext) Deadline() (time.Time, bool) { return time.Time{}, false }

func (x *requestContext) Done() <-chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.inner != nil {
		return x.inner.Done()
	}
	x.inner, x.cancel = context.WithCancel(context.Background())
	if x.over { // the connection may belong to another request by now
		x.cancel()
	} else if room := x.conn.buf[x.conn.end:]; len(room) > 0 {
		x.finished = make(chan int, 1)
		x.conn.SetReadDeadline(time.Time{}) // the request has been read
		go x.awaitClient(room)
	}
	return x.inner.Done()
}

// awaitClient returns when the client sends something or disconnects, or when the
// request ends. Bytes that arrive are the start of the next request.
func (x *requestContext) awaitClient(room []byte) {
	n, err := x.conn.receive(room)
	if n == 0 && err != nil {
		x.cancel()
	}
	x.finished <- n
}

func (x *requestContext) Err() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.inner != nil:
		return x.inner.Err()
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
	if x.inner != nil {
		return x.inner.Value(key)
	}
	return nil
}

// end is called when the handler has returned.
func (x *requestContext) end() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.over = true
	if x.finished != nil {
		x.conn.SetReadDeadline(time.Unix(1, 0)) // interrupts the read
		x.conn.end += <-x.finished
	}
	if x.cancel != nil {
		x.cancel()
	}
}
