package ratelimit_test

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/ratelimit"
)

// pagesStore counts how many pages its batches change, assuming 32 keys per page.
type pagesStore struct{ pages int }

func (s *pagesStore) count(n int, id func(int) int64) {
	changed := map[int64]bool{}
	for i := range n {
		changed[id(i)/32] = true
	}
	s.pages += len(changed)
}

func (s *pagesStore) LimitState(context.Context, int64) (db.LimitState, error) {
	return db.LimitState{}, nil
}

func (s *pagesStore) SaveLimitStates(_ context.Context, states []db.KeyLimitState) error {
	s.count(len(states), func(i int) int64 { return states[i].KeyID })
	return nil
}

func (s *pagesStore) SaveUsage(_ context.Context, usage []animalstore.Usage) error {
	s.count(len(usage), func(i int) int64 { return usage[i].KeyID })
	return nil
}

// TestBatchesAreNeighbours: a save of many keys changes each page of a database little
// more than once, in whatever order the keys were used. If batches mixed keys from all
// over, each batch would change nearly every page.
func TestBatchesAreNeighbours(t *testing.T) {
	const keys = 10_000
	var limits, counts pagesStore
	m := ratelimit.NewMemory(&limits, time.Now, slog.New(slog.DiscardHandler))
	usage := ratelimit.NewUsage(&counts, time.Now, slog.New(slog.DiscardHandler))
	for _, i := range rand.Perm(keys) {
		id := int64(i + 1)
		if _, err := m.Take(t.Context(), smallKey(id)); err != nil {
			t.Fatal(err)
		}
		usage.Record(id, true)
	}
	if err := m.Save(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := usage.Save(t.Context()); err != nil {
		t.Fatal(err)
	}
	const most = 2 * keys / 32
	if limits.pages > most || counts.pages > most {
		t.Errorf("got %d pages changed by limits and %d by usage, want at most %d each", limits.pages, counts.pages, most)
	}
}
