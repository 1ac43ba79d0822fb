package fair

import (
	"context"
	"errors"
	"sync"
)

// ErrClosed is returned by [Turns.Take] after Close.
var ErrClosed = errors.New("closed")

// Turns shares a number of slots, such as connections, between callers. While
// all slots are taken, callers wait in a [Queue]. A single caller can have all
// of them, except those reserved for lookups.
type Turns struct {
	mu      sync.Mutex
	free    int
	others  int // free slots that callers other than lookups may take
	closed  bool
	waiting Queue[chan error] // each receives one result
	lookups Queue[chan error]
	// lookupWasLast says that the last slot went to a lookup although another caller
	// could have taken it.
	lookupWasLast bool
}

// NewTurns returns Turns with this number of slots, including the ones reserved
// for lookups.
func NewTurns(slots, reserved int) *Turns { return &Turns{free: slots, others: slots - reserved} }

// Take waits for a slot and takes it, or fails when the context ends. After
// Take returns nil, the caller must call Done.
func (t *Turns) Take(ctx context.Context, caller int64) error {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return ErrClosed
	}
	// This overtakes nobody: a slot is never free while a caller who may have
	// it is waiting.
	if t.free > 0 && (t.others > 0 || isLookup(caller)) {
		t.addFree(caller, -1)
		t.mu.Unlock()
		return nil
	}
	turn := make(chan error, 1)
	t.queue(caller).Push(caller, turn)
	t.mu.Unlock()
	select {
	case err := <-turn:
		return err
	case <-ctx.Done():
	}
	t.mu.Lock()
	queued := t.queue(caller).Remove(caller, turn)
	t.mu.Unlock()
	if !queued && <-turn == nil {
		t.Done(caller)
	}
	return ctx.Err()
}

// Done releases the caller's slot.
func (t *Turns) Done(caller int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.addFree(caller, +1)
	if next, turn, ok := t.next(); ok {
		t.addFree(next, -1)
		turn <- nil
	}
}

// Waiting returns how many callers are waiting for a slot.
func (t *Turns) Waiting() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.waiting.Len() + t.lookups.Len()
}

// next removes and returns the next caller, alternating lookups with other
// callers.
func (t *Turns) next() (caller int64, turn chan error, ok bool) {
	if t.others > 0 && (t.lookupWasLast || t.lookups.Empty()) {
		if caller, turn, ok = t.waiting.Pop(); ok {
			t.lookupWasLast = false
			return caller, turn, ok
		}
	}
	t.lookupWasLast = t.others > 0
	return t.lookups.Pop()
}

func (t *Turns) queue(caller int64) *Queue[chan error] {
	if isLookup(caller) {
		return &t.lookups
	}
	return &t.waiting
}

// addFree adds to the free slots that a caller may take.
func (t *Turns) addFree(caller int64, n int) {
	t.free += n
	if !isLookup(caller) {
		t.others += n
	}
}

// Close makes all waiting and future calls of Take fail with [ErrClosed].
func (t *Turns) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for _, q := range []*Queue[chan error]{&t.waiting, &t.lookups} {
		for !q.Empty() {
			_, turn, _ := q.Pop()
			turn <- ErrClosed
		}
	}
}
