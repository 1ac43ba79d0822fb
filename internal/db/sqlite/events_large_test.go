package sqlite

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/testenv"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// TestFeedsEndInALargeStore: what followers and the console read takes as long in a store
// with 10 million events as in one with 100 thousand.
func TestFeedsEndInALargeStore(t *testing.T) {
	testenv.OnlySoak(t, "fills a store with 10 million events")
	const most, rounds, calls = 1.15, 60, 200
	small, large := feed(t, 100_000), feed(t, 10_000_000)
	for _, test := range []struct {
		name string
		read func(ctx context.Context, f feedStore, call int64) error
	}{
		{"the last page", func(ctx context.Context, f feedStore, _ int64) error {
			return wantEvents(20)(f.Events(ctx, db.EventQuery{After: f.newest - 20, Limit: 20}))
		}},
		{"the newest id", func(ctx context.Context, f feedStore, _ int64) error {
			_, err := f.PublishEvents(ctx)
			return err
		}},
		{"the history of a recent pet", func(ctx context.Context, f feedStore, call int64) error {
			return wantEvents(2)(f.Events(ctx, db.EventQuery{Subject: fmt.Sprint("pet/", f.newest/2-call), Limit: 100}))
		}},
		{"the newest page", func(ctx context.Context, f feedStore, _ int64) error {
			return wantEvents(20)(f.Events(ctx, db.EventQuery{Before: db.LatestEvents, Limit: 20}))
		}},
		{"the history of a recent pet, newest first", func(ctx context.Context, f feedStore, call int64) error {
			return wantEvents(2)(f.Events(ctx, db.EventQuery{Before: db.LatestEvents, Subject: fmt.Sprint("pet/", f.newest/2-call), Limit: 100}))
		}},
	} {
		var times [2][]time.Duration
		for round := range rounds {
			for i := range 2 {
				which := (i + round) % 2
				began := time.Now()
				for call := range int64(calls) {
					if err := test.read(t.Context(), []feedStore{small, large}[which], call); err != nil {
						t.Fatalf("%s: %v", test.name, err)
					}
				}
				times[which] = append(times[which], time.Since(began)/calls)
			}
		}
		var medians [2]time.Duration
		for i := range medians {
			slices.Sort(times[i])
			medians[i] = times[i][rounds/2]
		}
		ratio := float64(medians[1]) / float64(medians[0])
		t.Logf("%s: median %v with 100 thousand events, %v with 10 million, ratio %.3f", test.name, medians[0], medians[1], ratio)
		if ratio > most {
			t.Errorf("%s: ratio %.3f, want at most %v", test.name, ratio, most)
		}
	}
}

type feedStore struct {
	*DB
	newest int64
}

// feed opens a store with that many events, and half as many pets. Each was created and,
// later, changed.
func feed(t *testing.T, events int64) feedStore {
	t.Helper()
	path := filepath.Join(t.TempDir(), "store.db")
	mustOpen(t, path, Options{}).Close()
	c, err := sqlite.OpenConn(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := sqlitex.ExecuteTransient(c, "PRAGMA synchronous = OFF", nil); err != nil {
		t.Fatal(err)
	}
	err = sqlitex.ExecuteScript(c, fmt.Sprintf(`
		INSERT INTO categories VALUES (7, 'dogs');
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %[1]d / 2)
		INSERT INTO pets SELECT i, 'Rex the twenty-first', 7, i %% 3, 'rex the twenty-first' FROM n;
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %[1]d)
		INSERT INTO events SELECT i, i > %[1]d / 2, (i - 1) %% (%[1]d / 2) + 1, 1750000000000 + i, 1, '01234567890123456789',
			'{"id":' || ((i - 1) %% (%[1]d / 2) + 1) || ',"name":"Rex the twenty-first","categoryId":7,"status":"available"}' FROM n;`, events), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	return feedStore{mustOpen(t, path, Options{Serve: true}), events}
}

func wantEvents(n int) func([]animalstore.Event, int64, error) error {
	return func(events []animalstore.Event, _ int64, err error) error {
		if err == nil && len(events) != n {
			return fmt.Errorf("got %d events, want %d", len(events), n)
		}
		return err
	}
}
