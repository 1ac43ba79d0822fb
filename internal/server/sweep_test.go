package server

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db/sqlite"
)

// TestSweep: a server deletes all usage that is older than 90 days, and no other.
func TestSweep(t *testing.T) {
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "store.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	key := animalstore.NewKey{Name: "swept", Plan: animalstore.PlanFree, Permissions: animalstore.Read, Environment: animalstore.Production}
	if err := key.Validate(); err != nil {
		t.Fatal(err)
	}
	made, err := store.CreateKey(t.Context(), key, [32]byte{}, animalstore.At(time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	oldest := time.Now().Add(-animalstore.UsageKept).Truncate(time.Hour)
	var usage, want []animalstore.Usage
	for hour := -(sweepBatch + 10); hour <= 3; hour++ {
		u := animalstore.Usage{KeyID: made.ID, Hour: animalstore.At(oldest.Add(time.Duration(hour) * time.Hour)), Admitted: 1}
		usage = append(usage, u)
		if hour > 0 {
			want = append(want, u)
		}
	}
	slices.Reverse(want)
	if err := store.SaveUsage(t.Context(), usage); err != nil {
		t.Fatal(err)
	}
	stop := runInBackground((&Server{cfg: Config{Now: time.Now}, db: store}).sweep)
	defer stop()
	var got []animalstore.Usage
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if got, err = store.Usage(context.WithoutCancel(t.Context()), made.ID, animalstore.Time{}); err != nil {
			t.Fatal(err)
		}
		if slices.Equal(got, want) {
			return
		}
	}
	t.Errorf("got %d hours left, want the %d of the last 90 days", len(got), len(want))
}
