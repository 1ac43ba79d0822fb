package ratelimit_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/ratelimit"
)

// usageStore adds up the usage it gets, and fails at the calls in fail.
type usageStore struct {
	calls int
	fail  map[int]bool
	sum   map[int64]animalstore.Usage
}

func (s *usageStore) SaveUsage(_ context.Context, usage []animalstore.Usage) error {
	s.calls++
	if s.fail[s.calls] {
		return errors.New("no room")
	}
	for _, u := range usage {
		sum := s.sum[u.KeyID]
		sum.Admitted += u.Admitted
		sum.Refused += u.Refused
		s.sum[u.KeyID] = sum
	}
	return nil
}

// TestUsageIsSavedInBatches: many keys need few writes, and a failed write loses
// nothing.
func TestUsageIsSavedInBatches(t *testing.T) {
	const keys = 1700
	store := &usageStore{sum: map[int64]animalstore.Usage{}, fail: map[int]bool{2: true}}
	usage := ratelimit.NewUsage(store, time.Now, slog.New(slog.DiscardHandler))
	record := func() {
		for id := int64(1); id <= keys; id++ {
			usage.Record(id, true)
			usage.Record(id, id%2 == 0)
		}
	}
	record()
	if err := usage.Save(t.Context()); err == nil {
		t.Error("Save with a store that fails = nil, want its error")
	}
	record()
	if err := usage.Save(t.Context()); err != nil {
		t.Fatal(err)
	}
	// 500 at a time: one that worked, one that failed, and the rest in four.
	if store.calls > 2+4 {
		t.Errorf("got %d saves, want at most 6", store.calls)
	}
	for id := int64(1); id <= keys; id++ {
		want := animalstore.Usage{Admitted: 2, Refused: 2}
		if id%2 == 0 {
			want = animalstore.Usage{Admitted: 4}
		}
		if got := store.sum[id]; got.Admitted != want.Admitted || got.Refused != want.Refused {
			t.Fatalf("key %d: got %d admitted, %d refused, want %d and %d", id, got.Admitted, got.Refused, want.Admitted, want.Refused)
		}
	}
}

// TestUsageOfAnHour: requests count for the hour they were made in, even if the clock
// is set back meanwhile, and no batch contains the same hour of a key twice.
func TestUsageOfAnHour(t *testing.T) {
	hour := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	now := hour
	var got []animalstore.Usage
	usage := ratelimit.NewUsage(saveFunc(func(u []animalstore.Usage) { got = append(got, u...) }), func() time.Time { return now }, slog.New(slog.DiscardHandler))
	for range 2 {
		got = nil
		for _, offset := range []time.Duration{-1, 0, -2, time.Second} {
			now = hour.Add(offset)
			usage.Record(7, offset != 0)
		}
		if err := usage.Save(t.Context()); err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(got, func(a, b animalstore.Usage) int { return a.Hour.Compare(b.Hour.Time) })
		want := []animalstore.Usage{
			{KeyID: 7, Hour: animalstore.At(hour.Add(-time.Hour)), Admitted: 2, LastUsed: animalstore.At(hour.Add(-time.Millisecond))},
			{KeyID: 7, Hour: animalstore.At(hour), Admitted: 1, Refused: 1, LastUsed: animalstore.At(hour.Add(time.Second))},
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}

// saveFunc is a store that calls a function.
type saveFunc func([]animalstore.Usage)

func (f saveFunc) SaveUsage(_ context.Context, usage []animalstore.Usage) error {
	f(usage)
	return nil
}

// TestUsageSaveCanBeCancelled: a Save that waits for another can be cancelled.
func TestUsageSaveCanBeCancelled(t *testing.T) {
	began, proceed := make(chan struct{}), make(chan struct{})
	usage := ratelimit.NewUsage(stuckStore{began, proceed}, time.Now, slog.New(slog.DiscardHandler))
	usage.Record(1, true)
	done := make(chan error)
	go func() { done <- usage.Save(context.Background()) }()
	<-began
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := usage.Save(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Save during one that is stuck = %v, want context.Canceled", err)
	}
	close(proceed)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

type stuckStore struct{ began, proceed chan struct{} }

func (s stuckStore) SaveUsage(context.Context, []animalstore.Usage) error {
	close(s.began)
	<-s.proceed
	return nil
}
