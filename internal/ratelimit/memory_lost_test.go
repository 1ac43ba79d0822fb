package ratelimit_test

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/ratelimit"
)

// TestNothingIsLostAcrossIdleTimes makes requests from many goroutines while Run saves
// and drops keys, with pauses in which keys become idle.
func TestNothingIsLostAcrossIdleTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemoryStore()
		m := run(t, store)
		const (
			clients = 20
			keys    = 8
			rounds  = 60
		)
		limits := animalstore.Limits{PerMinute: 1 << 40, PerDay: 1 << 40}
		var wg sync.WaitGroup
		for c := range clients {
			wg.Go(func() {
				for round := range rounds {
					key := &animalstore.Key{ID: int64(1 + (c+round)%keys), Limits: limits}
					for range 50 {
						if _, err := m.Take(context.Background(), key); err != nil {
							t.Errorf("Take: %v", err)
						}
					}
					time.Sleep([]time.Duration{0, 500 * time.Millisecond, 3 * time.Minute}[(c+round)%3])
				}
			})
		}
		wg.Wait()
		m.stop()
		if store.loads < 2*keys {
			t.Errorf("got %d loads of %d keys: no key was dropped", store.loads, keys)
		}
		if got, want := store.total(), int64(clients*rounds*50); got != want {
			t.Errorf("got %d requests counted, want %d", got, want)
		}
	})
}

// TestNothingIsLostWhenDroppedInUse saves and drops as fast as it can, with a clock
// that makes every key look idle.
func TestNothingIsLostWhenDroppedInUse(t *testing.T) {
	const (
		clients = 8
		keys    = 4
		drops   = 2_000
	)
	noon := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
	var ahead, counted atomic.Int64
	var enough atomic.Bool
	store := newMemoryStore()
	m := ratelimit.NewMemory(store, func() time.Time { return noon.Add(time.Duration(ahead.Load())) }, slog.New(slog.DiscardHandler))
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
	for deadline := time.Now().Add(time.Minute); store.loaded() < drops && time.Now().Before(deadline); {
		if err := m.Save(t.Context()); err != nil {
			t.Error(err)
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
	if got := store.loaded(); got < drops {
		t.Errorf("got %d keys dropped in use, want %d", got, drops)
	}
}

// TestLiftedBanIsSaved reads the status of an unbanned key, without a request.
func TestLiftedBanIsSaved(t *testing.T) {
	store := newMemoryStore()
	now := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
	store.states[1] = db.LimitState{
		BannedAt: now.Add(-time.Minute).UnixMilli(), BannedUntil: now.Add(time.Hour).UnixMilli(), BanLevel: 3,
	}
	m := ratelimit.NewMemory(store, func() time.Time { return now }, slog.New(slog.DiscardHandler))
	key := smallKey(1)
	key.UnbannedAt = animalstore.At(now)
	if st, err := m.Status(t.Context(), key); err != nil || !st.BannedUntil.IsZero() {
		t.Errorf("got %+v, %v; want no ban", st, err)
	}
	if err := m.Save(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := store.state(1).BannedUntil, now.UnixMilli(); got != want {
		t.Errorf("got a ban until %d saved, want %d", got, want)
	}
}
