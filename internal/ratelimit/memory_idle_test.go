package ratelimit_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"animalstore"
	"animalstore/internal/ratelimit"
)

// TestIdleKeysLeaveMemory: a dropped key is read from the store again at its next use.
func TestIdleKeysLeaveMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemoryStore()
		m := run(t, store)
		defer m.stop()
		const keys, busy = 200, 1000 // some in every shard
		for id := range int64(keys) {
			m.take(3, id+1)
		}
		for range 10 {
			m.take(1, busy)
			pass(30 * time.Second)
		}
		before := store.loaded()
		m.take(1, busy)
		if got := store.loaded() - before; got != 0 {
			t.Errorf("a key in use was read %d times, want 0", got)
		}
		for id := range int64(keys) {
			if d := m.take(1, id+1); d.Remaining > small.PerDay-4 {
				t.Errorf("key %d: got %+v when it was used again, want its 3 requests counted", id+1, d)
			}
		}
		if got := store.loaded() - before; got != keys {
			t.Errorf("got %d of %d idle keys dropped from memory, want all", got, keys)
		}
	})
}

// TestNothingIsLostWhenDroppedInUse saves and drops as fast as it can, with a clock
// that makes every key look idle, whether it is saved or not.
func TestNothingIsLostWhenDroppedInUse(t *testing.T) {
	const (
		clients = 8
		keys    = 4
		drops   = 500
	)
	var ahead, counted atomic.Int64
	var enough atomic.Bool
	store := newMemoryStore()
	m := ratelimit.NewMemory(store, func() time.Time { return noon.Add(time.Duration(ahead.Load())) }, discard)
	limits := animalstore.Limits{PerMinute: 1 << 40, PerDay: 1 << 40}

	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			for i := 0; !enough.Load(); i++ {
				key := &animalstore.Key{ID: int64(1 + (c+i)%keys), Limits: limits}
				if _, err := m.Take(context.Background(), key); err != nil {
					t.Error(err)
				}
				counted.Add(1)
				runtime.Gosched()
			}
		})
	}
	for n := 0; store.loaded() < drops; n++ {
		if n%2 == 0 { // unsaved keys aren't dropped
			if err := m.Save(t.Context()); err != nil {
				t.Error(err)
			}
		}
		ahead.Store(int64(time.Hour))
		m.DropIdle()
		ahead.Store(0)
		runtime.Gosched()
	}
	enough.Store(true)
	wg.Wait()
	if err := m.Save(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := store.total(), counted.Load(); got != want {
		t.Errorf("got %d requests saved, want %d", got, want)
	}
}
