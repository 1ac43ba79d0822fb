package db

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"sync"
	"time"
)

// System is the caller of what the service does by itself, and of every context
// without a caller.
//
// A caller is whom an operation is for: the id of an API key, or a [LookupCaller].
// Engines share their connections fairly between callers, so that one with much to do
// can't make the others wait until it is done.
const System int64 = 0

// LookupCaller returns a caller for what is read before the key of a request is known.
// Some connections are reserved for such callers: see [Turns]. The hash of the secret
// stands for the key, because many requests with the same key may look it up at once.
func LookupCaller(hash KeyHash) int64 {
	return int64(binary.LittleEndian.Uint64(hash[:]) | 1<<63)
}

// LookupCallerOf is LookupCaller for what else is needed before a key's request can be
// served.
func LookupCallerOf(keyID int64) int64 { return -keyID }

// LookupSystem is a caller for what the service itself needs to check keys.
const LookupSystem int64 = math.MinInt64

func isLookup(caller int64) bool { return caller < 0 }

// CallerKey is the key of the context value that holds the caller, as a *int64.
type CallerKey struct{}

// WithCaller returns a context for operations of this caller.
func WithCaller(ctx context.Context, caller int64) context.Context {
	return context.WithValue(ctx, CallerKey{}, &caller)
}

// CallerOf returns the caller of a context.
func CallerOf(ctx context.Context) int64 {
	if caller, ok := ctx.Value(CallerKey{}).(*int64); ok {
		return *caller
	}
	return System
}

// FairQueue is a queue with a line for each caller: Pop takes the first of one line,
// then the first of the next. The zero value is an empty queue. It is not safe for
// concurrent use.
type FairQueue[T comparable] struct {
	lines map[int64]*line[T]
	ring  []*line[T] // the lines, the next one first
	spare *line[T]   // an empty line, for reuse
}

// line is what a caller has queued, never empty while it is in a FairQueue.
type line[T comparable] struct {
	caller int64
	items  []T
}

// Empty reports whether nothing is queued.
func (q *FairQueue[T]) Empty() bool { return len(q.ring) == 0 }

// Push adds an item to the end of its caller's line.
func (q *FairQueue[T]) Push(caller int64, item T) {
	l := q.lines[caller]
	if l == nil {
		if l = q.spare; l == nil {
			l = new(line[T])
		}
		l.caller, q.spare = caller, nil
		if q.lines == nil {
			q.lines = map[int64]*line[T]{}
		}
		q.lines[caller] = l
		q.ring = append(q.ring, l)
	}
	l.items = append(l.items, item)
}

// Pop removes and returns the next item and its caller.
func (q *FairQueue[T]) Pop() (caller int64, item T, ok bool) {
	if len(q.ring) == 0 {
		return 0, item, false
	}
	l := q.ring[0]
	q.ring[0], q.ring = nil, q.ring[1:]
	item = l.take()
	if len(l.items) > 0 { // the others first
		q.ring = append(q.ring, l)
	} else {
		q.forget(l)
	}
	return l.caller, item, true
}

// Remove removes an item and reports whether it was queued.
func (q *FairQueue[T]) Remove(caller int64, item T) bool {
	l := q.lines[caller]
	if l == nil {
		return false
	}
	i := slices.Index(l.items, item)
	if i < 0 {
		return false
	}
	l.items = slices.Delete(l.items, i, i+1)
	q.leave(l)
	return true
}

// take removes and returns the first item.
func (l *line[T]) take() (item T) {
	item, l.items[0] = l.items[0], item
	l.items = l.items[1:]
	return item
}

// leave removes a line that has become empty.
func (q *FairQueue[T]) leave(l *line[T]) {
	if len(l.items) == 0 {
		i := slices.Index(q.ring, l)
		q.ring = slices.Delete(q.ring, i, i+1)
		q.forget(l)
	}
}

func (q *FairQueue[T]) forget(l *line[T]) {
	delete(q.lines, l.caller)
	q.spare = l
}

// ErrTurnsClosed is returned by [Turns.Take] after Close.
var ErrTurnsClosed = errors.New("closed")

// Turns shares a number of slots, such as connections, between callers. While all are
// taken, callers wait in a [FairQueue]. A caller that is alone can have all of them,
// except those reserved for lookups.
type Turns struct {
	mu      sync.Mutex
	free    int
	others  int // free slots that callers other than lookups may take
	closed  bool
	waiting FairQueue[chan error] // each receives one result
	lookups FairQueue[chan error]
	after   bool // the last turn was a lookup's, though others could have had it
}

// NewTurns returns Turns with this number of slots, of which the reserved ones are only
// for lookups.
func NewTurns(slots, reserved int) *Turns { return &Turns{free: slots, others: slots - reserved} }

// unwatched is how long Take waits before it watches the context. Most turns come
// sooner, and to watch the context of a request takes a goroutine that waits for its
// client: with a thousand requests that wait it would be a thousand.
const unwatched = 200 * time.Millisecond

// Take waits until it is the caller's turn and takes a slot, or fails when the context
// ends. It may notice that a little later: see unwatched. After it returned nil, the
// caller must call Done.
func (t *Turns) Take(ctx context.Context, caller int64) error {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return ErrTurnsClosed
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
	if came, err := awaitTurn(ctx, turn); came {
		return err
	}
	t.mu.Lock()
	queued := t.queue(caller).Remove(caller, turn)
	t.mu.Unlock()
	if !queued && <-turn == nil {
		t.Done(caller)
	}
	return ctx.Err()
}

// awaitTurn returns what turn receives, unless the context ends first.
func awaitTurn(ctx context.Context, turn <-chan error) (came bool, err error) {
	wait := unwatched
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(deadline))
	}
	if ctx.Err() == nil && wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case err := <-turn:
			return true, err
		case <-timer.C:
		}
	}
	select {
	case err := <-turn:
		return true, err
	case <-ctx.Done():
		return false, nil
	}
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
func (t *Turns) Waiting() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, q := range []*FairQueue[chan error]{&t.waiting, &t.lookups} {
		for _, l := range q.ring {
			n += len(l.items)
		}
	}
	return n
}

// next removes and returns the caller whose turn it is: in turn a lookup and another.
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

func (t *Turns) queue(caller int64) *FairQueue[chan error] {
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
// [ErrTurnsClosed].
func (t *Turns) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for _, q := range []*FairQueue[chan error]{&t.waiting, &t.lookups} {
		for !q.Empty() {
			_, turn, _ := q.Pop()
			turn <- ErrTurnsClosed
		}
	}
}
