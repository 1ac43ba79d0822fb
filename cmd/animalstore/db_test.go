package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"animalstore/internal/db"
	"animalstore/internal/db/postgres"
	"animalstore/internal/db/postgres/pgtest"
	"animalstore/internal/db/sqlite"
	"animalstore/internal/db/transfer"
	"animalstore/internal/terminal"
)

// withStore opens a store while f runs.
func withStore(t *testing.T, url string, f func(db.DB)) {
	t.Helper()
	var store db.DB
	var err error
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
		store, err = sqlite.Open(t.Context(), path, sqlite.Options{})
	} else {
		store, err = postgres.Open(t.Context(), url, postgres.Options{Timeout: time.Minute})
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}()
	f(store)
}

// newStores are URLs of databases that are empty, by the engine's name.
func newStores(t *testing.T) map[string]string {
	t.Helper()
	return map[string]string{
		"SQLite":     "sqlite:" + filepath.Join(t.TempDir(), "store.db"),
		"PostgreSQL": pgtest.Shared(t).NewDatabase(t, ""),
	}
}

// TestPrintMoved: a table that is the same on both sides has one line, and one
// that differs has two.
func TestPrintMoved(t *testing.T) {
	moved := []transfer.Moved{
		{Table: &db.Table{Holds: "pets", Serial: true}, From: transfer.Contents{Rows: 1234, LastID: 1300, Sum: [32]byte{0xab}}, Into: transfer.Contents{Rows: 1234, LastID: 1300, Sum: [32]byte{0xab}}},
		{Table: &db.Table{Holds: "usage"}, From: transfer.Contents{Rows: 2, Sum: [32]byte{1}}, Into: transfer.Contents{Rows: 1, Sum: [32]byte{2}}},
	}
	const want = `WHAT                 ROWS   NEXT ID  SHA-256
pets                 1,234  1301     ab00000000000000
usage of the source  2      -        0100000000000000
usage of the target  1      -        0200000000000000
`
	var got strings.Builder
	if printMoved(&got, moved); got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &got, want)
	}
}

// TestExplainFailedMove: every message says why, what the databases contain, and
// what to do next.
func TestExplainFailedMove(t *testing.T) {
	const unchanged = "Nothing was moved: the target and the source are unchanged. "
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for _, test := range []struct {
		ctx  context.Context
		err  error
		want string
	}{
		{stopped, context.Canceled, "stopped. " + unchanged + "Run the same command again to start over"},
		{t.Context(), fmt.Errorf("commit: %w", db.ErrOutcomeUnknown), "the connection was lost during the commit, so either everything was moved or nothing. Run the same command again: it refuses if everything was moved"},
		{t.Context(), &transfer.NotEmptyError{Holds: []string{"pets: 12", "keys: 1"}}, "the target is not empty (pets: 12, keys: 1). Name an empty database with --to"},
		{t.Context(), transfer.ErrDiffers, "the target doesn't contain what the source contains, see the table. " + unchanged + "Please report this"},
		{t.Context(), fmt.Errorf("%w: 0 left", db.ErrFull), "the disk of the target is full. " + unchanged + "Free some space and run the same command again (storage full: 0 left)"},
		{t.Context(), fmt.Errorf("%w: gone", db.ErrUnavailable), "the database stopped responding. " + unchanged + "Run the same command again when it is back (storage unavailable: gone)"},
		{t.Context(), errors.New("copy the pets: unexpected failure"), "copy the pets: unexpected failure. " + unchanged + "Run the same command again once that is fixed"},
	} {
		if got := explainFailedMove(test.ctx, test.err).Error(); !strings.HasPrefix(got, test.want) {
			t.Errorf("%v:\ngot  %q\nwant %q", test.err, got, test.want)
		}
	}
}

// TestSeedIsTheSameEverywhere: the same seed is the same store in every engine.
func TestSeedIsTheSameEverywhere(t *testing.T) {
	t.Parallel()
	var stores []db.Rows
	for _, url := range newStores(t) {
		for range 2 { // the second adds
			if err := seed(t.Context(), seedFlags{database: databaseFlag{"database", url}, pets: 400, seed: 3}, terminal.NewPrinter(io.Discard, io.Discard, false)); err != nil {
				t.Fatal(err)
			}
		}
		withStore(t, url, func(store db.DB) { stores = append(stores, everything(t, store)) })
	}
	a, b := stores[0], stores[1]
	if len(a.Pets) != 800 || !slices.Equal(a.Pets, b.Pets) || !slices.Equal(a.Orders, b.Orders) || !slices.Equal(a.Categories, b.Categories) {
		t.Errorf("got stores of %d and %d pets that differ, want the same 800", len(a.Pets), len(b.Pets))
	}
}
