// Package fair shares a scarce resource between callers, so that a busy caller
// can't make the others wait until it is finished.
package fair

import (
	"context"
	"encoding/binary"
	"slices"
)

// Queue is a queue with a line for each caller: Pop takes the first of one line,
// then the first of the next. The zero value is an empty queue. It is not safe for
// concurrent use.
type Queue[T comparable] struct {
	lines map[Caller]*line[T]
	ring  []*line[T] // the lines, the next one first
}

// line is one caller's queued items. It is never empty while it is in a Queue.
type line[T comparable] struct {
	caller Caller
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
func (q *Queue[T]) Push(caller Caller, item T) {
	l := q.lines[caller]
	if l == nil {
		l = &line[T]{caller: caller}
		if q.lines == nil {
			q.lines = map[Caller]*line[T]{}
		}
		q.lines[caller] = l
		q.ring = append(q.ring, l)
	}
	l.items = append(l.items, item)
}

// Pop removes and returns the next item and its caller.
func (q *Queue[T]) Pop() (caller Caller, item T, ok bool) {
	if len(q.ring) == 0 {
		return caller, item, false
	}
	l := q.ring[0]
	q.ring[0], q.ring = nil, q.ring[1:]
	item, l.items[0] = l.items[0], item
	l.items = l.items[1:]
	if len(l.items) > 0 { // the others first
		q.ring = append(q.ring, l)
	} else {
		delete(q.lines, l.caller)
	}
	return l.caller, item, true
}

// Remove removes an item and reports whether it was queued.
func (q *Queue[T]) Remove(caller Caller, item T) bool {
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
		delete(q.lines, caller)
	}
	return true
}

// Caller identifies whom an operation is for. The zero value is the service itself, and the
// caller of every context without one.
type Caller struct {
	Kind Kind
	ID   int64
}

// Kind is what a [Caller] is.
type Kind int

const (
	// System is the service's background work, which has no ID.
	System Kind = iota
	// Key is an API key. ID is the key's.
	Key
	// Lookup is a read made before the key of a request is authorized. Some slots are
	// reserved for these reads: see [Semaphore]. ID is the key's if it is known.
	Lookup
)

// LookupByHash is the caller that finds the key with a secret's hash. The hash tells lookups
// apart, because many requests with the same key may look it up at once.
func LookupByHash(hash [32]byte) Caller {
	return Caller{Lookup, int64(binary.LittleEndian.Uint64(hash[:]))}
}

type callerKey struct{}

// WithCaller returns a context for operations of this caller.
func WithCaller(ctx context.Context, caller Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, caller)
}

// CallerOf returns the caller of a context.
func CallerOf(ctx context.Context) Caller {
	caller, _ := ctx.Value(callerKey{}).(Caller)
	return caller
}
