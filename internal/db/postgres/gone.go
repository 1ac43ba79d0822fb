package postgres

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"animalstore/internal/db"
)

// probePause is the time between two probes of a server that doesn't respond.
const probePause = 50 * time.Millisecond

// watch tracks whether the server responds at all. Once an operation has timed out, and
// no other has heard from the server meanwhile, further operations fail at once until
// the server responds again. Otherwise a request with several operations, or one that
// waits for others, would wait for each timeout in turn.
type watch struct {
	heard atomic.Int64 // when the server last responded, since started
	gone  atomic.Bool

	started time.Time
	ctx     context.Context // ends with Close
	close   context.CancelFunc
}

func newWatch() *watch {
	w := &watch{started: time.Now()}
	w.ctx, w.close = context.WithCancel(context.Background())
	return w
}

func (w *watch) now() int64 { return int64(time.Since(w.started)) }

// responded records that the server responded.
func (w *watch) responded() { w.heard.Store(w.now()) }

// check returns an error while the server doesn't respond.
func (w *watch) check() error {
	if w.gone.Load() {
		return fmt.Errorf("%w: the server does not respond", db.ErrUnavailable)
	}
	return nil
}

// timedOut records that an operation that began at the given time got no response. If
// no other has since then, it probes the server until one succeeds.
func (w *watch) timedOut(begun int64, probe func(context.Context) error) {
	if w.heard.Load() >= begun || !w.gone.CompareAndSwap(false, true) {
		return
	}
	go func() {
		for w.ctx.Err() == nil && probe(w.ctx) != nil {
			select {
			case <-time.After(probePause):
			case <-w.ctx.Done():
			}
		}
		w.gone.Store(false)
	}()
}
