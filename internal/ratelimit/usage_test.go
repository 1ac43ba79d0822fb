package ratelimit_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/ratelimit"
)

// TestUsageIsSavedInBatches: many keys need few writes, and a failed write loses
// nothing.
func TestUsageIsSavedInBatches(t *testing.T) {
	const keys = 1700
	calls, sum := 0, map[int64]db.KeyUsage{}
	usage := ratelimit.NewUsage(saveFunc(func(usage []db.KeyUsage) error {
		if calls++; calls == 2 {
			return errDisk
		}
		for _, u := range usage {
			sum[u.KeyID] = db.KeyUsage{Admitted: sum[u.KeyID].Admitted + u.Admitted, Refused: sum[u.KeyID].Refused + u.Refused}
		}
		return nil
	}), time.Now, discard)
	record := func() {
		for id := range int64(keys) {
			usage.Record(id, true)
			usage.Record(id, false)
		}
	}
	record()
	if err := usage.Save(t.Context()); !errors.Is(err, errDisk) {
		t.Errorf("got %v, want the store's error", err)
	}
	record()
	if err := usage.Save(t.Context()); err != nil {
		t.Fatal(err)
	}
	if calls > 2+4 { // 500 at a time: one that worked, one that failed, and the rest in four
		t.Errorf("got %d saves, want at most 6", calls)
	}
	for id := range int64(keys) {
		if want := (db.KeyUsage{Admitted: 2, Refused: 2}); sum[id] != want {
			t.Fatalf("key %d: got %+v, want %+v", id, sum[id], want)
		}
	}
}

// TestUsageOfAnHour: requests count for the hour they were made in, even if the clock
// is set back in between, and no batch contains the same hour of a key twice.
func TestUsageOfAnHour(t *testing.T) {
	hour := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	now := hour
	var got []db.KeyUsage
	usage := ratelimit.NewUsage(saveFunc(func(u []db.KeyUsage) error { got = append(got, u...); return nil }), func() time.Time { return now }, discard)
	for range 2 {
		got = nil
		for _, offset := range []time.Duration{-1, 0, -2, time.Second} {
			now = hour.Add(offset)
			usage.Record(7, offset != 0)
		}
		if err := usage.Save(t.Context()); err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(got, func(a, b db.KeyUsage) int { return a.Hour.Compare(b.Hour.Time) })
		want := []db.KeyUsage{
			{KeyID: 7, Hour: animalstore.At(hour.Add(-time.Hour)), Admitted: 2, LastUsed: animalstore.At(hour.Add(-time.Millisecond))},
			{KeyID: 7, Hour: animalstore.At(hour), Admitted: 1, Refused: 1, LastUsed: animalstore.At(hour.Add(time.Second))},
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}

// saveFunc is a store that calls a function.
type saveFunc func([]db.KeyUsage) error

func (f saveFunc) SaveUsage(_ context.Context, usage []db.KeyUsage) error {
	return f(usage)
}

// TestUsageSaveCanBeCancelled: a Save that waits for another can be cancelled.
func TestUsageSaveCanBeCancelled(t *testing.T) {
	began, proceed := make(chan struct{}), make(chan struct{})
	usage := ratelimit.NewUsage(saveFunc(func([]db.KeyUsage) error {
		close(began)
		<-proceed
		return nil
	}), time.Now, discard)
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
