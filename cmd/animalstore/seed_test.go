package main

import (
	"cmp"
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
	"animalstore/internal/db/postgres"
	"animalstore/internal/db/postgres/pgtest"
	"animalstore/internal/db/sqlite"
	"animalstore/internal/sample"
	"animalstore/internal/terminal"
	"animalstore/internal/testenv"
)

// openStore opens a new store that is closed when the test ends.
func openStore(t *testing.T) *sqlite.DB {
	t.Helper()
	store := openStoreAt(t, filepath.Join(t.TempDir(), "store.db"))
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

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

func mustFill(t *testing.T, store db.DB, s sample.Store) {
	t.Helper()
	if err := seedStore(t.Context(), store, s, silent()); err != nil {
		t.Fatal(err)
	}
}

// everything reads a whole store the way its callers do, by ascending ids.
func everything(t *testing.T, store db.DB) (all db.Rows) {
	t.Helper()
	const limit = 1000
	for before := int64(0); ; before = all.Pets[len(all.Pets)-1].ID {
		page, err := store.Pets(t.Context(), db.PetQuery{Before: before, Limit: limit})
		if err != nil {
			t.Fatal(err)
		}
		if all.Pets = append(all.Pets, page...); len(page) < limit {
			break
		}
	}
	for before := int64(0); ; before = all.Orders[len(all.Orders)-1].ID {
		page, err := store.Orders(t.Context(), db.OrderQuery{Before: before, Limit: limit})
		if err != nil {
			t.Fatal(err)
		}
		if all.Orders = append(all.Orders, page...); len(page) < limit {
			break
		}
	}
	var err error
	if all.Categories, err = store.Categories(t.Context(), db.CategoryQuery{Limit: limit}); err != nil {
		t.Fatal(err)
	}
	slices.Reverse(all.Pets)
	slices.Reverse(all.Orders)
	return all
}

// sampleRows are the rows of a sample, numbered from after the given ids.
func sampleRows(s sample.Store, lastPet, lastOrder int64) (rows db.Rows) {
	rows.Categories = s.Categories()
	for b := range s.Batches() {
		db.Rows{Pets: b.Pets, Orders: b.Orders}.Shift(lastPet+int64(len(rows.Pets)), lastOrder+int64(len(rows.Orders)))
		rows.Pets, rows.Orders = append(rows.Pets, b.Pets...), append(rows.Orders, b.Orders...)
	}
	return rows
}

func compareRows(t *testing.T, got, want db.Rows) {
	t.Helper()
	if !slices.Equal(got.Pets, want.Pets) {
		t.Errorf("got %d pets that differ from the %d wanted", len(got.Pets), len(want.Pets))
	}
	if !slices.Equal(got.Orders, want.Orders) {
		t.Errorf("got %d orders that differ from the %d wanted", len(got.Orders), len(want.Orders))
	}
	if !slices.Equal(got.Categories, want.Categories) {
		t.Errorf("got the categories %v, want %v", got.Categories, want.Categories)
	}
}

// TestSeedAdds: seeding doesn't change what is already in a store.
func TestSeedAdds(t *testing.T) {
	t.Parallel()
	store := openStore(t)
	rex, _, err := store.CreatePet(t.Context(), animalstore.NewPet{Name: "Rex", CategoryID: 2}, nil) // its category has no name
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.PutCategory(t.Context(), animalstore.Category{ID: 900, Name: "Cats"}, func(*animalstore.Category) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if _, _, err := store.PlaceOrder(t.Context(), rex.ID, animalstore.At(time.Now()), nil); err != nil {
		t.Fatal(err)
	}
	before := everything(t, store)
	s := sample.Store{Seed: 1, Pets: 300, BatchSize: 130}
	mustFill(t, store, s)
	mustFill(t, store, s)

	// Category 2 is taken, and there is already one with the name Cats.
	want := db.Rows{Pets: before.Pets, Orders: before.Orders, Categories: before.Categories}
	free := int64(0)
	for _, c := range s.Categories() {
		if c.Name == "Cats" {
			s.CategoryIDs = append(s.CategoryIDs, 900)
			continue
		}
		if free++; free == 2 {
			free++
		}
		s.CategoryIDs = append(s.CategoryIDs, free)
		want.Categories = append(want.Categories, animalstore.Category{ID: free, Name: c.Name})
	}
	slices.SortFunc(want.Categories, func(a, b animalstore.Category) int { return cmp.Compare(a.ID, b.ID) })
	for range 2 {
		added := sampleRows(s, int64(len(want.Pets)), int64(len(want.Orders)))
		want.Pets, want.Orders = append(want.Pets, added.Pets...), append(want.Orders, added.Orders...)
	}
	compareRows(t, everything(t, store), want)
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
		"by a failure":   func(func()) error { return errors.New("unexpected failure") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			store := &failingStore{DB: openStore(t), batches: 1, then: func() error { return then(interrupt) }}
			s := sample.Store{Seed: 1, Pets: 3000, BatchSize: 1000}
			err := seedStore(ctx, store, s, silent())
			stored := db.Rows{Categories: s.Categories()}
			for first := range s.Batches() {
				stored.Pets, stored.Orders = first.Pets, first.Orders
				break
			}
			compareRows(t, everything(t, store), stored)
			if err == nil || !strings.Contains(err.Error(), "1,000 of 3,000 pets") || !strings.Contains(err.Error(), "--pets 2000") {
				t.Errorf("got %v, want what was added and how to add the rest", err)
			}
		})
	}
}

// TestSeedIsTheSameEverywhere: the same seed is the same store in every engine.
func TestSeedIsTheSameEverywhere(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	other, err := postgres.Open(t.Context(), pgtest.Shared(t).NewDatabase(t, ""), postgres.Options{Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	var stores []db.Rows
	for _, store := range []db.DB{openStore(t), other} {
		for range 2 { // the second adds
			mustFill(t, store, sample.Store{Seed: 3, Pets: 400})
		}
		stores = append(stores, everything(t, store))
	}
	a, b := stores[0], stores[1]
	if len(a.Pets) != 800 || !slices.Equal(a.Pets, b.Pets) || !slices.Equal(a.Orders, b.Orders) || !slices.Equal(a.Categories, b.Categories) {
		t.Errorf("got stores of %d and %d pets that differ, want the same 800", len(a.Pets), len(b.Pets))
	}
}
