package fair

import (
	"context"
	"errors"
	"sync"
)

// ErrClosed is returned by [Turns.Take] after Close.
var ErrClosed = errors.New("closed")

// Turns shares a number of slots, such as connections, between callers. While all are
// taken, callers wait in a [Queue]. A caller that is alone can have all of them,
// except those reserved for lookups.
type Turns struct {
	mu      sync.Mutex
	free    int
	others  int // free slots that callers other than lookups may take
	closed  bool
	waiting Queue[chan error] // each receives one result
	lookups Queue[chan error]
	after   bool // the last turn was a lookup's, though others could have had it
}

// NewTurns returns Turns with this number of slots, of which the reserved ones are only
// for lookups.
func NewTurns(slots, reserved int) *Turns { return &Turns{free: slots, others: slots - reserved} }

// Take waits until it is the caller's turn and takes a slot, or fails when the context
// ends. After it returned nil, the caller must call Done.
func (t *Turns) Take(ctx context.Context, caller int64) error {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return ErrClosed
	}
	// Nobody is overtaken here: a slot is never left free while somebody waits who
	// may have it.
	if t.free > 0 && (t.others > 0 || isLookup(caller)) {
		t.count(caller, -1)
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

// Done gives back the slot that Take took for the caller.
func (t *Turns) Done(caller int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count(caller, +1)
	if next, turn, ok := t.next(); ok {
		t.count(next, -1)
		turn <- nil
	}
}

// Waiting returns how many wait for a slot.
func (t *Turns) Waiting() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.waiting.Len() + t.lookups.Len()
}

// next removes and returns the caller whose turn it is, alternating lookups with
// other callers.
func (t *Turns) next() (caller int64, turn chan error, ok bool) {
	if t.others > 0 && (t.after || t.lookups.Empty()) {
		if caller, turn, ok = t.waiting.Pop(); ok {
			t.after = false
			return caller, turn, ok
		}
	}
	t.after = t.others > 0
	return t.lookups.Pop()
}

func (t *Turns) queue(caller int64) *Queue[chan error] {
	if isLookup(caller) {
		return &t.lookups
	}
	return &t.waiting
}

// count adds to the free slots that a caller may take.
func (t *Turns) count(caller int64, n int) {
	t.free += n
	if !isLookup(caller) {
		t.others += n
	}
}

// Close makes all that wait for a slot, and all later ones, fail with
// [ErrClosed].
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
