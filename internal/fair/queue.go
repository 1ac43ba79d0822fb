// Package fair shares a scarce resource between callers, so that a busy caller
// can't make the others wait until it is finished.
package fair

import (
	"context"
	"encoding/binary"
	"math"
	"slices"
)

// Queue is a queue with a line for each caller: Pop takes the first of one line,
// then the first of the next. The zero value is an empty queue. It is not safe for
// concurrent use.
type Queue[T comparable] struct {
	lines map[int64]*line[T]
	ring  []*line[T] // the lines, the next one first
	spare *line[T]   // an empty line, for reuse
}

// line is one caller's queued items. It is never empty while it is in a Queue.
type line[T comparable] struct {
	caller int64
	items  []T
}

// Empty reports whether nothing is queued.
func (q *Queue[T]) Empty() bool { return len(q.ring) == 0 }

// Len returns how many items are queued.
func (q *Queue[T]) Len() (n int) {
	for _, l := range q.ring {
		n += len(l.items)
	}
	return n
}

// Push adds an item to the end of its caller's line.
func (q *Queue[T]) Push(caller int64, item T) {
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
func (q *Queue[T]) Pop() (caller int64, item T, ok bool) {
	if len(q.ring) == 0 {
		return 0, item, false
	}
	l := q.ring[0]
	q.ring[0], q.ring = nil, q.ring[1:]
	item, l.items[0] = l.items[0], item
	l.items = l.items[1:]
	if len(l.items) > 0 { // the others first
		q.ring = append(q.ring, l)
	} else {
		q.forget(l)
	}
	return l.caller, item, true
}

// Remove removes an item and reports whether it was queued.
func (q *Queue[T]) Remove(caller int64, item T) bool {
	l := q.lines[caller]
	if l == nil {
		return false
	}
	i := slices.Index(l.items, item)
	if i < 0 {
		return false
	}
	l.items = slices.Delete(l.items, i, i+1)
	if len(l.items) == 0 {
		i := slices.Index(q.ring, l)
		q.ring = slices.Delete(q.ring, i, i+1)
		q.forget(l)
	}
	return true
}

func (q *Queue[T]) forget(l *line[T]) {
	delete(q.lines, l.caller)
	q.spare = l
}

// A caller identifies whom an operation is for: the id of an API key, or one of
// the values below.

// System identifies background work, and every context without a caller.
const System int64 = 0

// LookupCaller identifies reads made before the key of a request is known. Some
// slots are reserved for these reads: see [Semaphore]. The caller is derived from
// the secret's hash, because many requests with the same key may look it up at
// once.
func LookupCaller(hash [32]byte) int64 {
	return int64(binary.LittleEndian.Uint64(hash[:]) | 1<<63)
}

// LookupCallerOf identifies other reads made before a key is authorized.
func LookupCallerOf(keyID int64) int64 { return -keyID }

// LookupSystem identifies the service's own reads for checking keys.
const LookupSystem int64 = math.MinInt64

func isLookup(caller int64) bool { return caller < 0 }

type callerKey struct{}

// WithCaller returns a context for operations of this caller.
func WithCaller(ctx context.Context, caller int64) context.Context {
	return context.WithValue(ctx, callerKey{}, caller)
}

// CallerOf returns the caller of a context.
func CallerOf(ctx context.Context) int64 {
	caller, _ := ctx.Value(callerKey{}).(int64)
	return caller
}
