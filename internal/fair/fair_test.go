package fair

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

func key(id int64) Caller { return Caller{Key, id} }

// TestQueue: callers take turns, and each caller's items stay in order.
func TestQueue(t *testing.T) {
	var q Queue[string]
	for i, caller := range []int64{1, 1, 1, 1, 2, 2, 3} {
		q.Push(key(caller), fmt.Sprintf("%d:%d", caller, i))
	}
	if !q.Remove(key(1), "1:2") || q.Remove(key(1), "1:2") || q.Remove(key(4), "4:0") {
		t.Error("Remove doesn't report whether the item was queued")
	}
	var got []string
	pop := func(n int) {
		for range n {
			_, item, ok := q.Pop()
			if !ok {
				item = "none"
			}
			got = append(got, item)
		}
	}
	pop(2)
	q.Push(key(4), "4:7") // goes last: the others were there first
	pop(6)
	want := []string{"1:0", "2:4", "3:6", "1:1", "2:5", "4:7", "1:3", "none"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if len(q.lines) != 0 || len(q.ring) != 0 {
		t.Errorf("the empty queue still has %d lines, %d in the ring", len(q.lines), len(q.ring))
	}
}

// TestSemaphore: however many slots one caller is waiting for, another caller waits
// for only one of them.
func TestSemaphore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sem := NewSemaphore(1, 0)
		if err := sem.Acquire(t.Context(), key(1)); err != nil {
			t.Fatal(err)
		}
		var got []int64
		for _, caller := range []int64{1, 1, 1, 1, 2, 3, 3} {
			go func() {
				if err := sem.Acquire(t.Context(), key(caller)); err != nil {
					t.Error(err)
				}
				got = append(got, caller)
				sem.Release(key(caller))
			}()
			synctest.Wait()
		}
		sem.Release(key(1))
		synctest.Wait()
		if want := []int64{1, 2, 3, 1, 3, 1, 1}; !slices.Equal(got, want) {
			t.Errorf("turns of %v, want %v", got, want)
		}
		if sem.free != 1 {
			t.Errorf("%d slots are free, want 1", sem.free)
		}
	})
}

// TestSemaphoreForLookups: only lookups may use the reserved slot. Otherwise they
// alternate with other callers, and with each other.
func TestSemaphoreForLookups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy, many, one := key(1), LookupByHash([32]byte{1}), LookupByHash([32]byte{2})
		sem := NewSemaphore(3, 1)
		var order []Caller
		for _, caller := range []Caller{busy, busy, busy, busy, many, many, many, many, one} {
			go func() {
				if sem.Acquire(t.Context(), caller) == nil {
					order = append(order, caller)
				}
			}()
			synctest.Wait()
		}
		// The first two and the first lookup didn't have to wait.
		for _, done := range []Caller{busy, busy, many, many, one, busy} {
			sem.Release(done)
			synctest.Wait()
		}
		want := []Caller{busy, busy, many, many, busy, one, busy, many, many}
		if !slices.Equal(order, want) {
			t.Errorf("got  %v\nwant %v", order, want)
		}
		sem.Close()
		if err := sem.Acquire(t.Context(), key(1)); !errors.Is(err, ErrClosed) {
			t.Errorf("after Close: got %v, want ErrClosed", err)
		}
	})
}

// TestSemaphoreGivenUp: a slot is neither lost nor taken twice when waiting callers
// give up.
func TestSemaphoreGivenUp(t *testing.T) {
	const slots = 3
	sem := NewSemaphore(slots, 1)
	var taken atomic.Int64
	var wg sync.WaitGroup
	for i := range int64(8) {
		caller := Caller{Kind: Kind(i % 3), ID: i}
		wg.Go(func() {
			for range 2000 {
				ctx, cancel := context.WithCancel(t.Context())
				if rand.N(2) == 0 {
					go cancel()
				}
				if sem.Acquire(ctx, caller) == nil {
					if n := taken.Add(1); n > slots {
						t.Errorf("%d of %d slots are taken", n, slots)
					}
					taken.Add(-1)
					sem.Release(caller)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	if sem.free != slots {
		t.Errorf("%d slots are free, want %d", sem.free, slots)
	}
	if !sem.waiting.Empty() || !sem.lookups.Empty() {
		t.Error("a caller is still waiting")
	}
}
