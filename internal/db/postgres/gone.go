package postgres

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"animalstore/internal/db"
)

// probePause lies between two questions to a server that does not answer.
const probePause = 50 * time.Millisecond

// watch knows whether the server answers at all. Once an operation has waited for
// its whole time in vain, and nobody else has heard from the server meanwhile, the
// ones that follow are refused at once until it answers again: a request that
// takes several operations, or waits for others, would otherwise wait for each of
// them in turn.
type watch struct {
	heard atomic.Int64 // when the server last said anything, since started
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

// answered notes that the server said something.
func (w *watch) answered() { w.heard.Store(w.now()) }

// check refuses an operation while the server does not answer.
func (w *watch) check() error {
	if w.gone.Load() {
		return fmt.Errorf("%w: the server does not answer", db.ErrUnavailable)
	}
	return nil
}

// unanswered notes that an operation that began then waited in vain. ask puts a
// question to the server.
func (w *watch) unanswered(begun int64, ask func(context.Context) error) {
	if w.heard.Load() >= begun || !w.gone.CompareAndSwap(false, true) {
		return
	}
	go func() {
		for w.ctx.Err() == nil && ask(w.ctx) != nil {
			select {
			case <-time.After(probePause):
			case <-w.ctx.Done():
			}
		}
		w.gone.Store(false)
	}()
}
