package fair

import (
	"context"
	"errors"
	"sync"
)

// ErrClosed is returned by [Semaphore.Acquire] after Close.
var ErrClosed = errors.New("closed")

// Semaphore shares a number of slots, such as connections, between callers. While
// all slots are taken, callers wait in a [Queue]. A single caller can have all
// of them, except those reserved for lookups.
type Semaphore struct {
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

// NewSemaphore returns a Semaphore with this number of slots, including the ones reserved
// for lookups.
func NewSemaphore(slots, reserved int) *Semaphore {
	return &Semaphore{free: slots, others: slots - reserved}
}

// Acquire waits for a slot and takes it, or fails when the context ends. After
// Acquire returns nil, the caller must call Release.
func (s *Semaphore) Acquire(ctx context.Context, caller Caller) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return ErrClosed
	}
	// This overtakes nobody: a slot is never free while a caller who may have
	// it is waiting.
	if s.free > 0 && (s.others > 0 || caller.Kind == Lookup) {
		s.addFree(caller, -1)
		s.mu.Unlock()
		return nil
	}
	result := make(chan error, 1)
	s.queue(caller).Push(caller, result)
	s.mu.Unlock()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
	}
	s.mu.Lock()
	queued := s.queue(caller).Remove(caller, result)
	s.mu.Unlock()
	if !queued && <-result == nil {
		s.Release(caller)
	}
	return ctx.Err()
}

// Release releases the caller's slot.
func (s *Semaphore) Release(caller Caller) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addFree(caller, +1)
	if next, result, ok := s.next(); ok {
		s.addFree(next, -1)
		result <- nil
	}
}

// Waiting returns how many callers are waiting for a slot.
func (s *Semaphore) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting.Len() + s.lookups.Len()
}

// next removes and returns the next caller, alternating lookups with other
// callers.
func (s *Semaphore) next() (caller Caller, result chan error, ok bool) {
	if s.others > 0 && (s.lookupWasLast || s.lookups.Empty()) {
		if caller, result, ok = s.waiting.Pop(); ok {
			s.lookupWasLast = false
			return caller, result, ok
		}
	}
	s.lookupWasLast = s.others > 0
	return s.lookups.Pop()
}

func (s *Semaphore) queue(caller Caller) *Queue[chan error] {
	if caller.Kind == Lookup {
		return &s.lookups
	}
	return &s.waiting
}

// addFree adds to the free slots that a caller may take.
func (s *Semaphore) addFree(caller Caller, n int) {
	s.free += n
	if caller.Kind != Lookup {
		s.others += n
	}
}

// Close makes all waiting and future calls of Acquire fail with [ErrClosed].
func (s *Semaphore) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, q := range []*Queue[chan error]{&s.waiting, &s.lookups} {
		for !q.Empty() {
			_, result, _ := q.Pop()
			result <- ErrClosed
		}
	}
}
