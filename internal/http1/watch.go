package http1

import (
	"context"
	"sync"
	"time"
)

// watch is the context of a request. It ends with the request, or when its client
// goes away. To see that takes a read in the background, which is begun when
// somebody first waits for it (asking Err is not enough): few requests do.
type watch struct {
	conn *conn

	mu       sync.Mutex
	over     bool
	inner    context.Context // nil until somebody wants to know
	cancel   context.CancelFunc
	finished chan int // how much the read brought; nil if there is none
}

func (w *watch) Deadline() (time.Time, bool) { return time.Time{}, false }

func (w *watch) Done() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.inner != nil {
		return w.inner.Done()
	}
	w.inner, w.cancel = context.WithCancel(context.Background())
	if w.over { // and the connection is no longer ours to look at
		w.cancel()
	} else if room := w.conn.buf[w.conn.end:]; len(room) > 0 {
		w.finished = make(chan int, 1)
		w.conn.SetReadDeadline(time.Time{}) // it was for the request, which is here
		go w.read(room)
	}
	return w.inner.Done()
}

// read returns when the client sends something, goes away, or the request ends.
// The first may be its next request, which is none of our concern yet.
func (w *watch) read(room []byte) {
	n, err := w.conn.receive(room)
	if n == 0 && err != nil {
		w.cancel()
	}
	w.finished <- n
}

func (w *watch) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.inner != nil:
		return w.inner.Err()
	case w.over:
		return context.Canceled
	}
	return nil
}

// Value lets package context find the one inside, and spare itself a goroutine.
func (w *watch) Value(key any) any {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.inner != nil {
		return w.inner.Value(key)
	}
	return nil
}

// end is called when the handler has returned.
func (w *watch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	if w.finished != nil {
		w.conn.SetReadDeadline(time.Unix(1, 0)) // interrupts the read
		w.conn.end += <-w.finished
	}
	if w.cancel != nil {
		w.cancel()
	}
}
