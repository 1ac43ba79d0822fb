package ratelimit_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/ratelimit"
)

var discard = slog.New(slog.DiscardHandler)

var errDisk = errors.New("disk failed")

var small = animalstore.Limits{PerMinute: 1_000, PerDay: 5_000}

func smallKey(id int64) *animalstore.Key {
	return &animalstore.Key{ID: id, Plan: animalstore.PlanEnterprise, Limits: small}
}

// running is a Memory whose Run is active, on the clock of the synctest bubble.
type running struct {
	*ratelimit.Memory
	t    *testing.T
	stop func() // stops Run and waits for it to return
}

func run(t *testing.T, store ratelimit.Store) *running {
	r := &running{t: t, Memory: ratelimit.NewMemory(store, time.Now, discard)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { r.Run(ctx); close(done) }()
	r.stop = func() { cancel(); <-done }
	return r
}

// take makes n requests with a key.
func (r *running) take(n int, keyID int64) ratelimit.Decision {
	r.t.Helper()
	var d ratelimit.Decision
	for range n {
		d = mustTake(r.t, r, smallKey(keyID))
	}
	return d
}

// pass advances the fake clock and lets everything that falls due happen.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// TestRunSaves: a kill loses at most the last second, even if a save fails, and a stop nothing.
func TestRunSaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemoryStore()
		store.failAt = 7
		m := run(t, store)
		for i := range 20 {
			pass(137 * time.Millisecond) // not in step with Run's ticks
			m.take(1, 1)
			pass(time.Second)
			if got, want := store.state(1).Day.Used, int64(i+1); got != want {
				t.Errorf("a second after request %d: got %d saved, want %d", i+1, got, want)
			}
		}
		m.take(7, 1)
		m.stop()
		if got := store.state(1).Day.Used; got != 27 {
			t.Errorf("after a stop: got %d saved, want 27", got)
		}
	})
}

// TestSaveComesInBatches: changes are saved 500 at a time, and each once, even if a batch
// in the middle fails.
func TestSaveComesInBatches(t *testing.T) {
	store := newMemoryStore()
	m := ratelimit.NewMemory(store, time.Now, discard)
	for id := range int64(1700) {
		mustTake(t, m, smallKey(id+1))
	}
	store.failAt = 2
	if err := m.Save(t.Context()); !errors.Is(err, errDisk) {
		t.Fatalf("got %v, want the store's error", err)
	}
	for range 2 { // the second has nothing to save
		if err := m.Save(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if want := []int{500, 500, 500, 200}; !slices.Equal(store.batches, want) || len(store.states) != 1700 {
		t.Errorf("got %d keys saved in batches of %v, want 1700 in %v", len(store.states), store.batches, want)
	}
}

func TestLoadErrorReachesTheCaller(t *testing.T) {
	store := newMemoryStore()
	store.states[1] = db.LimitState{Day: db.Window{Used: 4_999, End: 1 << 50}}
	m := ratelimit.NewMemory(store, time.Now, discard)
	store.fail(errDisk, nil)
	if _, err := m.Take(t.Context(), smallKey(1)); !errors.Is(err, errDisk) {
		t.Errorf("Take: got %v, want %v", err, errDisk)
	}
	if _, err := m.Status(t.Context(), smallKey(1)); !errors.Is(err, errDisk) {
		t.Errorf("Status: got %v, want %v", err, errDisk)
	}
	if err := m.Save(t.Context()); err != nil || len(store.batches) > 0 {
		t.Errorf("Save: got %v and %v saved, want nothing saved for a key that couldn't be read", err, store.batches)
	}
	store.fail(nil, nil)
	if d := mustTake(t, m, smallKey(1)); !d.Allowed || d.Remaining != 0 {
		t.Errorf("next Take: got %+v; want the last request of the day admitted", d)
	}
}

// panickyStore panics the first time that it is read.
type panickyStore struct{ *memoryStore }

func (s panickyStore) LimitState(ctx context.Context, keyID int64) (db.LimitState, error) {
	state, err := s.memoryStore.LimitState(ctx, keyID)
	if s.loaded() == 1 {
		panic("in the store")
	}
	return state, err
}

// TestPanicInTheStore: after a panic, which the server recovers from, the key can be used.
func TestPanicInTheStore(t *testing.T) {
	m := ratelimit.NewMemory(panickyStore{newMemoryStore()}, time.Now, discard)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		_, _ = m.Take(t.Context(), smallKey(1))
	}()
	mustTake(t, m, smallKey(1)) // a lock still held would make it wait forever
}
