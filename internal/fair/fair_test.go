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

// TestQueue: callers take turns, and each caller's items stay in order.
func TestQueue(t *testing.T) {
	var q Queue[string]
	for i, caller := range []int64{1, 1, 1, 1, 2, 2, 3} {
		q.Push(caller, fmt.Sprintf("%d:%d", caller, i))
	}
	if q.Remove(1, "1:2") != true || q.Remove(1, "1:2") != false || q.Remove(4, "4:0") != false {
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
	q.Push(4, "4:7") // goes last: the others were there first
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
		if err := sem.Acquire(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		var got []int64
		for _, caller := range []int64{1, 1, 1, 1, 2, 3, 3} {
			go func() {
				if err := sem.Acquire(t.Context(), caller); err != nil {
					t.Error(err)
				}
				got = append(got, caller)
				sem.Release(caller)
			}()
			synctest.Wait()
		}
		sem.Release(1)
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
		const key = 1
		many, one := LookupCaller([32]byte{1}), LookupCaller([32]byte{2})
		sem := NewSemaphore(3, 1)
		var order []int64
		for _, caller := range []int64{key, key, key, key, many, many, many, many, one} {
			go func() {
				if sem.Acquire(t.Context(), caller) == nil {
					order = append(order, caller)
				}
			}()
			synctest.Wait()
		}
		// The first two and the first lookup didn't have to wait.
		for _, done := range []int64{key, key, many, many, one, key} {
			sem.Release(done)
			synctest.Wait()
		}
		want := []int64{key, key, many, many, key, one, key, many, many}
		if !slices.Equal(order, want) {
			t.Errorf("got  %d\nwant %d", order, want)
		}
		sem.Close()
		if err := sem.Acquire(t.Context(), 1); !errors.Is(err, ErrClosed) {
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
	for caller := range int64(8) {
		wg.Go(func() {
			for range 2000 {
				ctx, cancel := context.WithCancel(t.Context())
				if rand.N(2) == 0 {
					go cancel()
				}
				if sem.Acquire(ctx, caller-1) == nil {
					if n := taken.Add(1); n > slots {
						t.Errorf("%d of %d slots are taken", n, slots)
					}
					taken.Add(-1)
					sem.Release(caller - 1)
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
