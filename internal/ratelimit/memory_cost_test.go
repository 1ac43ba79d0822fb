package ratelimit_test

import (
	"context"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/ratelimit"
	"animalstore/internal/testenv"
)

// nowhere is a Store that stores nothing, so that only the limiter's own memory is
// measured.
type nowhere struct{}

func (nowhere) LimitState(context.Context, int64) (db.LimitState, error) {
	return db.LimitState{}, nil
}
func (nowhere) SaveLimitStates(context.Context, []db.KeyLimitState) error { return nil }

func newCostMemory() *ratelimit.Memory {
	return ratelimit.NewMemory(nowhere{}, time.Now, slog.New(slog.DiscardHandler))
}

func TestTakeOnAWarmKeyDoesNotAllocate(t *testing.T) {
	m := newCostMemory()
	ctx := t.Context()
	for _, tc := range []struct {
		name   string
		limits animalstore.Limits
		do     func(*animalstore.Key) error
	}{
		{"admitted", animalstore.Limits{PerMinute: 1 << 40, PerDay: 1 << 40}, func(k *animalstore.Key) error {
			_, err := m.Take(ctx, k)
			return err
		}},
		{"refused", animalstore.Limits{PerMinute: 1, PerDay: 1}, func(k *animalstore.Key) error {
			_, err := m.Take(ctx, k)
			return err
		}},
		{"status", animalstore.Limits{PerMinute: 1, PerDay: 1}, func(k *animalstore.Key) error {
			_, err := m.Status(ctx, k)
			return err
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			key := &animalstore.Key{ID: 1, Limits: tc.limits}
			allocs := testing.AllocsPerRun(1000, func() {
				if err := tc.do(key); err != nil {
					t.Fatal(err)
				}
			})
			if allocs != 0 {
				t.Errorf("got %v allocations, want 0", allocs)
			}
		})
	}
}

// millionKeys is the number of keys that must fit into 200 MiB.
const millionKeys = 1_000_000

// fill uses a million keys once and returns how much memory that took.
func fill(tb testing.TB, m *ratelimit.Memory) (mebibytes float64) {
	tb.Helper()
	key := animalstore.Key{Limits: animalstore.Limits{PerMinute: 60, PerDay: 1_000}}
	before := heap()
	for id := range int64(millionKeys) {
		key.ID = id + 1
		if _, err := m.Take(context.Background(), &key); err != nil {
			tb.Fatal(err)
		}
	}
	after := heap()
	runtime.KeepAlive(m)
	return float64(after-before) / (1 << 20)
}

func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

func TestAMillionKeysFitInto200MiB(t *testing.T) {
	testenv.Slow(t)
	m := newCostMemory()
	got := fill(t, m)
	t.Logf("%.0f MiB, with every key waiting to be saved", got)
	if got > 200 {
		t.Errorf("got %.0f MiB, want at most 200", got)
	}
}

func BenchmarkTake(b *testing.B) {
	key := &animalstore.Key{ID: 1, Limits: animalstore.Limits{PerMinute: 1 << 40, PerDay: 1 << 40}}
	b.Run("one key", func(b *testing.B) {
		m := newCostMemory()
		b.ReportAllocs()
		for b.Loop() {
			if _, err := m.Take(context.Background(), key); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("one key, all processors", func(b *testing.B) {
		m := newCostMemory()
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := m.Take(context.Background(), key); err != nil {
					b.Error(err)
				}
			}
		})
	})
	b.Run("a million keys", func(b *testing.B) {
		m := newCostMemory()
		used := fill(b, m)
		k := animalstore.Key{Limits: key.Limits}
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			k.ID = int64(i%millionKeys) + 1
			if _, err := m.Take(context.Background(), &k); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(used, "MiB")
	})
}

// BenchmarkSave saves a thousand changed keys among a million.
func BenchmarkSave(b *testing.B) {
	m := newCostMemory()
	fill(b, m)
	if err := m.Save(b.Context()); err != nil {
		b.Fatal(err)
	}
	key := animalstore.Key{Limits: animalstore.Limits{PerMinute: 60, PerDay: 1_000}}
	b.ReportAllocs()
	for b.Loop() {
		for id := range int64(1_000) {
			key.ID = id + 1
			if _, err := m.Take(b.Context(), &key); err != nil {
				b.Fatal(err)
			}
		}
		if err := m.Save(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
