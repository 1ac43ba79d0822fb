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

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/db/sqlite"
	"animalstore/internal/sample"
	"animalstore/internal/terminal"
)

func openStoreAt(t *testing.T, file string) *sqlite.DB {
	t.Helper()
	store, err := sqlite.Open(t.Context(), file, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// silent prints nothing.
func silent() *terminal.Printer { return terminal.NewPrinter(io.Discard, io.Discard) }

// everything reads a whole store, oldest first.
func everything(t *testing.T, store db.DB) (all db.Rows) {
	t.Helper()
	const limit = 10_000
	var errs [3]error
	all.Pets, errs[0] = store.Pets(t.Context(), animalstore.PetQuery{}, db.Page{Limit: limit})
	all.Orders, errs[1] = store.Orders(t.Context(), animalstore.OrderQuery{}, db.Page{Limit: limit})
	all.Categories, errs[2] = store.Categories(t.Context(), db.CategoryQuery{Limit: limit})
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	slices.Reverse(all.Pets)
	slices.Reverse(all.Orders)
	return all
}

// mustCheck runs the checks of "db check" on a store, and closes it.
func mustCheck(t *testing.T, store *sqlite.DB, file string) {
	t.Helper()
	source, err := sqlite.OpenSource(t.Context(), file, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(checkStore(t.Context(), source, silent()), source.Close(), store.Close()); err != nil {
		t.Error(err)
	}
}

// TestSeedAdds: seeding doesn't change what is already in a store.
func TestSeedAdds(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "store.db")
	store := openStoreAt(t, file)
	rex, _, err := store.CreatePet(t.Context(), animalstore.NewPet{Name: "Rex", CategoryID: 2}, nil) // its category has no name
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.PutCategory(t.Context(), animalstore.Category{ID: 900, Name: "Cats"}, func(*animalstore.Category) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if _, _, err := store.PlaceOrder(t.Context(), animalstore.NewOrder{PetID: rex.ID}, animalstore.At(time.Now()), nil); err != nil {
		t.Fatal(err)
	}
	before := everything(t, store)
	s := sample.Store{Seed: 1, Pets: 300, BatchSize: 130}
	for range 2 {
		if err := seedStore(t.Context(), store, s, silent()); err != nil {
			t.Fatal(err)
		}
	}
	after := everything(t, store)
	if len(after.Pets) != 601 || after.Pets[0] != before.Pets[0] || after.Orders[0] != before.Orders[0] {
		t.Errorf("got %d pets, beginning with %v and %v, want 601 and %v and %v", len(after.Pets), after.Pets[0], after.Orders[0], before.Pets[0], before.Orders[0])
	}
	for _, c := range before.Categories {
		if !slices.Contains(after.Categories, c) {
			t.Errorf("got no category %v any more", c)
		}
	}
	if got, want := len(after.Categories), len(s.Categories())+1; got != want { // Cats and the one without a name were there
		t.Errorf("got %d categories, want %d", got, want)
	}
	mustCheck(t, store, file)
}

// failingStore is a database that calls then after the given number of batches.
type failingStore struct {
	*sqlite.DB
	batches int
	then    func() error
}

func (c *failingStore) Load(ctx context.Context, rows db.Rows) error {
	if c.batches == 0 {
		if err := c.then(); err != nil {
			return err
		}
	}
	c.batches--
	return c.DB.Load(ctx, rows)
}

// TestSeedInterrupted: when seeding ends early, the message says what is stored, and
// that is consistent.
func TestSeedInterrupted(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]func(interrupt func()) error{
		"by Ctrl-C":      func(interrupt func()) error { interrupt(); return nil },
		"by a full disk": func(func()) error { return fmt.Errorf("%w: no room", db.ErrFull) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			file := filepath.Join(t.TempDir(), "store.db")
			store := &failingStore{DB: openStoreAt(t, file), batches: 1, then: func() error { return then(interrupt) }}
			err := seedStore(ctx, store, sample.Store{Seed: 1, Pets: 3000, BatchSize: 1000}, silent())
			if err == nil || !strings.Contains(err.Error(), "1,000 of 3,000 pets") || !strings.Contains(err.Error(), "--pets 2000") {
				t.Errorf("got %v, want what was added and how to add the rest", err)
			}
			if n := len(everything(t, store).Pets); n != 1000 {
				t.Errorf("got %d pets, want 1000", n)
			}
			mustCheck(t, store.DB, file)
		})
	}
}
