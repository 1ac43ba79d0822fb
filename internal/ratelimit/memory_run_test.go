package ratelimit_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/ratelimit"
)

var discard = slog.New(slog.DiscardHandler)

var small = animalstore.Limits{PerMinute: 1_000, PerDay: 5_000}

func smallKey(id int64) *animalstore.Key {
	return &animalstore.Key{ID: id, Plan: animalstore.PlanEnterprise, Limits: small}
}

// running is a Memory whose Run is active, on the clock of the synctest bubble.
type running struct {
	*ratelimit.Memory
	t    *testing.T
	log  *strings.Builder
	stop func() // stops Run and waits for it to return
}

func run(t *testing.T, store ratelimit.Store) *running {
	r := &running{t: t, log: new(strings.Builder)}
	r.Memory = ratelimit.NewMemory(store, time.Now, slog.New(slog.NewTextHandler(r.log, nil)))
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
		var err error
		if d, err = r.Take(context.Background(), smallKey(keyID)); err != nil {
			r.t.Fatalf("Take: %v", err)
		}
	}
	return d
}

// pass advances the fake clock and lets everything that falls due happen.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestRunSavesWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemoryStore()
		m := run(t, store)
		defer m.stop()
		for i := range 20 {
			pass(137 * time.Millisecond) // not in step with Run's ticks
			m.take(1, 1)
			pass(time.Second)
			if got, want := store.state(1).Day.Used, int64(i+1); got != want {
				t.Errorf("a second after request %d: got %d saved, want %d", i+1, got, want)
			}
		}
	})
}

// TestKillForgetsAtMostASecond copies the store at many moments, as kill -9 would
// leave it, and checks that it has everything counted more than a second before.
func TestKillForgetsAtMostASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemoryStore()
		m := run(t, store)
		defer m.stop()
		var counted []int64 // after each tenth of a second
		for i := range 100 {
			m.take(i%7, 1)
			total := int64(i % 7)
			if i > 0 {
				total += counted[i-1]
			}
			counted = append(counted, total)
			if i >= 10 {
				if got, want := store.state(1).Day.Used, counted[i-10]; got < want {
					t.Errorf("killed after %d tenths of a second: got %d, want at least the %d counted a second before", i, got, want)
				}
			}
			pass(100 * time.Millisecond)
		}
	})
}

func TestBanIsSavedWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemoryStore()
		m := run(t, store)
		defer m.stop()
		m.take(1001, 1)
		pass(1001 * time.Millisecond)
		ban := m.take(1000, 1)
		if !ban.BannedNow {
			t.Fatalf("got %+v, want a ban", ban)
		}
		pass(time.Second)
		after := ratelimit.NewMemory(store, time.Now, slog.New(slog.DiscardHandler))
		d, err := after.Take(t.Context(), smallKey(1))
		if err != nil || d.Code != animalstore.KeyBanned || d.Reset != ban.Reset {
			t.Errorf("after a kill: got %+v, %v; want key_banned until %d", d, err, ban.Reset)
		}
	})
}

func TestRunSavesWhenItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemoryStore()
		m := run(t, store)
		m.take(7, 1)
		m.stop()
		if got := store.state(1).Day.Used; got != 7 {
			t.Errorf("got %d saved, want 7", got)
		}
	})
}

func TestSaveComesInBatches(t *testing.T) {
	store := newMemoryStore()
	m := ratelimit.NewMemory(store, time.Now, slog.New(slog.DiscardHandler))
	const keys = 1234
	for id := range int64(keys) {
		if _, err := m.Take(t.Context(), smallKey(id+1)); err != nil {
			t.Fatal(err)
		}
	}
	for _, save := range []struct {
		name string
		want int
	}{{"first save", keys}, {"a save without a change", 0}} {
		store.batches = nil
		if err := m.Save(t.Context()); err != nil {
			t.Fatal(err)
		}
		total, largest := 0, 0
		for _, n := range store.batches {
			total, largest = total+n, max(largest, n)
		}
		if total != save.want || largest > 500 {
			t.Errorf("%s: got %d states in batches of at most %d, want %d in batches of at most 500", save.name, total, largest, save.want)
		}
	}
}

// TestSaveFailureKeepsEverything makes the store fail during a minute of requests.
func TestSaveFailureKeepsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemoryStore()
		m := run(t, store)
		defer m.stop()
		store.fail(nil, errors.New("disk failed"))
		for range 60 {
			m.take(10, 1)
			m.take(3, 2)
			pass(time.Second)
		}
		if got := store.state(1).Day.Used; got != 0 {
			t.Fatalf("got %d saved while the store fails, want 0", got)
		}
		store.fail(nil, nil)
		pass(time.Second)
		for id, want := range map[int64]int64{1: 600, 2: 180} {
			if got := store.state(id).Day.Used; got != want {
				t.Errorf("key %d: got %d saved after the store recovered, want %d", id, got, want)
			}
		}
		for line, want := range map[string]int{"cannot be saved": 1, "saved again": 1} {
			if got := strings.Count(m.log.String(), line); got != want {
				t.Errorf("got %q in the log %d times, want %d:\n%s", line, got, want, m.log)
			}
		}
	})
}

// TestSaveFailureInALaterBatch makes the store accept some batches and then fail.
func TestSaveFailureInALaterBatch(t *testing.T) {
	store := &secondBatchFails{memoryStore: newMemoryStore()}
	m := ratelimit.NewMemory(store, time.Now, slog.New(slog.DiscardHandler))
	const keys = 1700
	for id := range int64(keys) {
		if _, err := m.Take(t.Context(), smallKey(id+1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Save(t.Context()); err == nil {
		t.Fatal("Save: got nil, want the store's error")
	}
	if err := m.Save(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := len(store.states); got != keys {
		t.Errorf("got %d keys saved, want %d", got, keys)
	}
	total := 0
	for _, n := range store.batches {
		total += n
	}
	if total != keys {
		t.Errorf("got %d states saved, want each of %d once", total, keys)
	}
}

type secondBatchFails struct {
	*memoryStore
	calls int
}

func (s *secondBatchFails) SaveLimitStates(ctx context.Context, states []db.KeyLimitState) error {
	if s.calls++; s.calls == 2 {
		return errors.New("disk failed")
	}
	return s.memoryStore.SaveLimitStates(ctx, states)
}

func TestLoadErrorReachesTheCaller(t *testing.T) {
	broken := errors.New("disk failed")
	store := newMemoryStore()
	store.states[1] = db.LimitState{Day: db.Window{Used: 4_999, End: 1 << 50}}
	m := ratelimit.NewMemory(store, time.Now, slog.New(slog.DiscardHandler))
	store.fail(broken, nil)
	if _, err := m.Take(t.Context(), smallKey(1)); !errors.Is(err, broken) {
		t.Errorf("Take: got %v, want %v", err, broken)
	}
	if _, err := m.Status(t.Context(), smallKey(1)); !errors.Is(err, broken) {
		t.Errorf("Status: got %v, want %v", err, broken)
	}
	if err := m.Save(t.Context()); err != nil || len(store.batches) > 0 {
		t.Errorf("Save: got %v and %v saved, want nothing saved for a key that couldn't be read", err, store.batches)
	}
	store.fail(nil, nil)
	d, err := m.Take(t.Context(), smallKey(1))
	if err != nil || !d.Allowed || d.Remaining != 0 {
		t.Errorf("next Take: got %+v, %v; want the last request of the day admitted", d, err)
	}
}

// TestIdleKeysLeaveMemory: a dropped key is read from the store again at its next use.
func TestIdleKeysLeaveMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemoryStore()
		m := run(t, store)
		defer m.stop()
		const keys = 200 // some in every shard
		for id := range int64(keys) {
			m.take(3, id+1)
		}
		m.take(1, 1000)
		pass(30 * time.Second)
		before := store.loaded()
		m.take(1, 1)
		if got := store.loaded() - before; got != 0 {
			t.Errorf("a key used 30 s ago was read %d times, want 0", got)
		}
		for range 10 {
			pass(30 * time.Second)
			m.take(1, 1000)
		}
		before = store.loaded()
		m.take(1, 1000)
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

// TestUnsavedKeysStayInMemory lets keys become idle while the store fails.
func TestUnsavedKeysStayInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemoryStore()
		m := run(t, store)
		defer m.stop()
		store.fail(nil, errors.New("disk failed"))
		m.take(900, 1)
		pass(time.Hour)
		store.fail(nil, nil)
		m.take(1, 1)
		st, err := m.Status(t.Context(), smallKey(1))
		if got, want := small.PerDay-st.Day.Remaining, int64(901); err != nil || got != want {
			t.Errorf("got %d counted, %v; want %d", got, err, want)
		}
	})
}
