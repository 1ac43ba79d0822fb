package sqlite

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
)

// The progress of a write decides what its caller can be told when the time is up.
const (
	writeWaiting   int32 = iota // in the queue, or in a batch whose transaction hasn't begun
	writeRunning                // its function runs
	writeRan                    // its function succeeded: a commit follows, or it runs again
	writeFailed                 // its function failed: nothing of it is stored, unless it runs again
	writeAbandoned              // its caller has left, and it won't run, or not again
)

// begin reports whether a write is to run: not if its context has ended or its caller has
// left.
func (wr *write) begin() bool {
	if wr.err = wr.ctx.Err(); wr.err != nil {
		return false
	}
	for _, before := range []int32{writeWaiting, writeRan, writeFailed} {
		if wr.progress.CompareAndSwap(before, writeRunning) {
			return true
		}
	}
	return false
}

// ran notes the result of the function. From here on nothing touches the variables that
// the function sets, so its caller may leave.
func (wr *write) ran(err error) {
	if err != nil {
		wr.progress.Store(writeFailed)
		return
	}
	wr.progress.Store(writeRan)
}

// wait returns when the outcome of a write is known, or the deadline of its context has
// passed, even if the disk is stuck. known is false in the latter case: the writer may
// still use wr.
func (w *writer) wait(wr *write) (known bool, err error) {
	var timeout <-chan time.Time
	var cancelled <-chan struct{}
	if deadline, ok := wr.ctx.Deadline(); ok {
		if wr.timer == nil {
			wr.timer = time.NewTimer(time.Until(deadline))
		} else {
			wr.timer.Reset(time.Until(deadline))
		}
		defer wr.timer.Stop()
		timeout = wr.timer.C
	} else {
		cancelled = wr.ctx.Done()
	}
	select {
	case <-wr.done:
		return true, wr.err
	case <-w.ended:
		return w.outcome(wr)
	case <-timeout:
		return w.giveUp(wr)
	case <-cancelled:
	}
	if wr.progress.CompareAndSwap(writeWaiting, writeAbandoned) {
		return false, wr.ctx.Err()
	}
	// It has begun, and there is no deadline.
	select {
	case <-wr.done:
		return true, wr.err
	case <-w.ended:
		return w.outcome(wr)
	}
}

// outcome is that of a write when the writer has ended.
func (w *writer) outcome(wr *write) (known bool, err error) {
	select {
	case <-wr.done: // it was in the last batch
		return true, wr.err
	default:
		return false, errClosed
	}
}

// giveUp is called when the deadline has passed. The caller is told that nothing was
// changed only if that is certain.
func (w *writer) giveUp(wr *write) (known bool, err error) {
	if wr.progress.CompareAndSwap(writeWaiting, writeAbandoned) {
		return false, w.notBegun(context.DeadlineExceeded)
	}
	for {
		select {
		case <-wr.done:
			return true, wr.err
		default:
		}
		switch {
		case wr.progress.CompareAndSwap(writeFailed, writeAbandoned):
			return false, context.DeadlineExceeded
		case wr.progress.CompareAndSwap(writeRan, writeAbandoned):
			return false, fmt.Errorf("commit: %w: %w", db.ErrOutcomeUnknown, context.DeadlineExceeded)
		}
		time.Sleep(time.Millisecond) // it is running, briefly: it sets its caller's variables
	}
}

// notBegun is the error of a write whose time was up before it began: another process
// holds a lock, or this one has too much to do.
func (w *writer) notBegun(err error) error {
	if errors.Is(err, context.DeadlineExceeded) && (w.locked.beginning.Load() || w.locked.out.Load()) {
		return fmt.Errorf("%w: another process has locked the database", db.ErrUnavailable)
	}
	return err
}

// lockState says whether another process keeps the writer from writing.
type lockState struct {
	beginning atomic.Bool // a transaction is being begun, which waits for a lock
	out       atomic.Bool // the last one couldn't be, because of a lock
}

// begin begins a transaction.
func (w *writer) begin() error {
	w.locked.beginning.Store(true)
	err := w.exec("BEGIN IMMEDIATE")
	w.locked.out.Store(sqlite.ErrCode(err).ToPrimary() == sqlite.ResultBusy)
	w.locked.beginning.Store(false)
	return err
}
