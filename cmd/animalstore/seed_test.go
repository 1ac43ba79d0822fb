package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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
)

func openStore(t *testing.T) *sqlite.DB {
	t.Helper()
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "store.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

func mustFill(t *testing.T, store db.DB, pets int64, seed uint64) {
	t.Helper()
	if err := fill(t.Context(), store, newSample(seed, pets), io.Discard); err != nil {
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

// checkAgreement fails the test where pets, orders and categories contradict
// each other, or say what could not have happened.
func checkAgreement(t *testing.T, all db.Rows) {
	t.Helper()
	named := map[int64]bool{}
	for _, c := range all.Categories {
		if named[c.ID] = true; c.Validate() != nil {
			t.Errorf("category %d has the name %q", c.ID, c.Name)
		}
	}
	orders := map[int64][]animalstore.Order{}
	var last animalstore.Order
	for _, o := range all.Orders {
		if o.CreatedAt.Before(last.CreatedAt.Time) || o.UpdatedAt.Before(o.CreatedAt.Time) || o.UpdatedAt.After(sampleEnd) {
			t.Fatalf("order %+v comes after %+v, before it was made, or after the end %v", o, last, sampleEnd)
		}
		if placed := o.Status == animalstore.OrderPlaced; placed != (o.CreatedAt == o.UpdatedAt) {
			t.Fatalf("order %+v: want it changed once it is more than placed", o)
		}
		orders[o.PetID], last = append(orders[o.PetID], o), o
	}
	for _, p := range all.Pets {
		if err := (animalstore.NewPet{Name: p.Name, Status: p.Status}).Validate(); err != nil || !named[p.CategoryID] {
			t.Fatalf("pet %+v: %v, named category: %t", p, err, named[p.CategoryID])
		}
		// Every order but the last was cancelled before the next was placed, and
		// the last has made the pet what it is.
		want := animalstore.PetAvailable
		of := orders[p.ID]
		for i, o := range of {
			want = o.Status.PetStatus()
			if i < len(of)-1 && (o.Status != animalstore.OrderCancelled || o.UpdatedAt.After(of[i+1].CreatedAt.Time)) {
				t.Fatalf("pet %d was ordered again while it could not be: %+v", p.ID, of)
			}
		}
		if p.Status != want {
			t.Fatalf("pet %+v with orders %+v: want it %s", p, of, want)
		}
		delete(orders, p.ID)
	}
	if len(orders) > 0 {
		t.Errorf("there are orders for %d pets that do not exist", len(orders))
	}
}

func TestSeededStoreAgrees(t *testing.T) {
	t.Parallel()
	for _, pets := range []int64{1, 2, 60, 1500} {
		t.Run(fmt.Sprint(pets), func(t *testing.T) {
			store := openStore(t)
			s := newSample(3, pets)
			s.chunk = 700
			if err := fill(t.Context(), store, s, io.Discard); err != nil {
				t.Fatal(err)
			}
			all := everything(t, store)
			checkAgreement(t, all)
			if int64(len(all.Pets)) != pets || all.Pets[0].ID != 1 || all.Pets[pets-1].ID != pets {
				t.Errorf("got %d pets, from %d to %d, want %d from 1 on", len(all.Pets), all.Pets[0].ID, all.Pets[len(all.Pets)-1].ID, pets)
			}
		})
	}
}

// inMemory is the store that a sample makes of an empty one.
func inMemory(s *sample) (all db.Rows) {
	for i, kind := range sampleKinds {
		s.categories = append(s.categories, int64(i+1))
		all.Categories = append(all.Categories, animalstore.Category{ID: int64(i + 1), Name: kind.name})
	}
	for s.made < s.pets {
		rows := s.next()
		renumber(&rows, int64(len(all.Pets)), int64(len(all.Orders)))
		all.Pets, all.Orders = append(all.Pets, rows.Pets...), append(all.Orders, rows.Orders...)
	}
	return all
}

// TestSampleIsBelievable: a store is neither too even nor too odd.
func TestSampleIsBelievable(t *testing.T) {
	t.Parallel()
	all := inMemory(newSample(1, 5*sampleChunk))
	checkAgreement(t, all)
	pets, orders, names, kinds := map[animalstore.PetStatus]int{}, map[animalstore.OrderStatus]int{}, map[string]int{}, map[int64]int{}
	for _, p := range all.Pets {
		pets[p.Status]++
		names[p.Name]++
		kinds[p.CategoryID]++
	}
	for _, o := range all.Orders {
		orders[o.Status]++
	}
	between := func(what string, n, of int, low, high float64) {
		t.Helper()
		if share := float64(n) / float64(of); share < low || share > high {
			t.Errorf("%s: got %.3f of all, want %.2f to %.2f", what, share, low, high)
		}
	}
	between("available pets", pets[animalstore.PetAvailable], len(all.Pets), 0.4, 0.65)
	between("pending pets", pets[animalstore.PetPending], len(all.Pets), 0.03, 0.12)
	between("sold pets", pets[animalstore.PetSold], len(all.Pets), 0.3, 0.5)
	between("placed orders", orders[animalstore.OrderPlaced], len(all.Orders), 0.005, 0.1)
	between("cancelled orders", orders[animalstore.OrderCancelled], len(all.Orders), 0.05, 0.2)
	between("pets of the most common kind", slices.Max(values(kinds)), len(all.Pets), 0.1, 0.25)
	if len(kinds) != len(sampleKinds) || len(names) < 1000 {
		t.Errorf("got %d kinds and %d names, want all %d and more than 1000", len(kinds), len(names), len(sampleKinds))
	}
}

func values[K comparable](m map[K]int) (all []int) {
	for _, n := range m {
		all = append(all, n)
	}
	return all
}

// TestSeedIsDeterministic: people compare what they see, so a seed gives the
// same store everywhere, with the next version too.
func TestSeedIsDeterministic(t *testing.T) {
	t.Parallel()
	digest := func(all db.Rows) string {
		content, err := json.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(content)
		return hex.EncodeToString(sum[:8])
	}
	for _, test := range []struct {
		seed uint64
		pets int64
		want string
	}{
		{1, 500, "3cf591daf9d506a9"}, {2, 500, "345a20b43e95138b"}, {1, 501, "dd1f1d937ff1f149"}, {1, 3*sampleChunk + 1, "3cd7b44a2bca0f3c"},
	} {
		if got := digest(inMemory(newSample(test.seed, test.pets))); got != test.want {
			t.Errorf("seed %d, %d pets: got another store than ever before: %s, want %s", test.seed, test.pets, got, test.want)
		}
		if test.pets < sampleChunk { // a database of them takes its time
			store := openStore(t)
			mustFill(t, store, test.pets, test.seed)
			if got := digest(everything(t, store)); got != test.want {
				t.Errorf("seed %d, %d pets: got another store in the database: %s, want %s", test.seed, test.pets, got, test.want)
			}
		}
	}
}

// TestSeedAdds: what is in a store stays as it is.
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
	order, _, err := store.PlaceOrder(t.Context(), rex.ID, animalstore.At(time.Now()), nil)
	if err != nil {
		t.Fatal(err)
	}
	before := everything(t, store)
	mustFill(t, store, 300, 1)
	once := everything(t, store)
	mustFill(t, store, 300, 1)
	twice := everything(t, store)

	for what, ok := range map[string]bool{
		"pets":       slices.Equal(twice.Pets[:1], before.Pets) && slices.Equal(twice.Pets[:301], once.Pets),
		"orders":     slices.Equal(twice.Orders[:1], before.Orders) && slices.Equal(twice.Orders[:len(once.Orders)], once.Orders),
		"categories": slices.Equal(twice.Categories, once.Categories),
	} {
		if !ok {
			t.Errorf("the %s that were there changed", what)
		}
	}
	if len(twice.Pets) != 601 || len(once.Categories) != len(sampleKinds)+1 {
		t.Errorf("got %d pets and %d categories, want 601 and %d", len(twice.Pets), len(once.Categories), len(sampleKinds)+1)
	}
	for id, want := range map[int64]string{1: "Dogs", 2: "", 3: "Rabbits", 900: "Cats"} {
		if got, err := store.Category(t.Context(), id); err != nil || got.Name != want {
			t.Errorf("category %d: got %q (%v), want %q", id, got.Name, err, want)
		}
	}
	// Rex and his order are real, and later than any sample.
	twice.Pets = twice.Pets[1:]
	twice.Orders = slices.DeleteFunc(twice.Orders, func(o animalstore.Order) bool { return o.ID == order.ID })
	twice.Categories = slices.DeleteFunc(twice.Categories, func(c animalstore.Category) bool { return c.ID == rex.CategoryID })
	again := slices.IndexFunc(twice.Orders, func(o animalstore.Order) bool { return o.PetID > 301 })
	checkAgreement(t, db.Rows{Categories: twice.Categories, Pets: twice.Pets[:300], Orders: twice.Orders[:again]})
	checkAgreement(t, db.Rows{Categories: twice.Categories, Pets: twice.Pets[300:], Orders: twice.Orders[again:]})
}

// cutOff is a database that something happens to once it has taken some chunks.
type cutOff struct {
	*sqlite.DB
	chunks int
	then   func() error
}

func (c *cutOff) Load(ctx context.Context, rows db.Rows) error {
	if c.chunks == 0 {
		if err := c.then(); err != nil {
			return err
		}
	}
	c.chunks--
	return c.DB.Load(ctx, rows)
}

// TestSeedCutOff: whatever ends it early, it says what is stored, which is true
// and complete in itself.
func TestSeedCutOff(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		then func(interrupt func()) error
		want string
	}{
		"by Ctrl-C":      {func(interrupt func()) error { interrupt(); return nil }, "stopped: of 3,000 pets, "},
		"by a full disk": {func(func()) error { return fmt.Errorf("%w: no room", db.ErrFull) }, "the disk is full: of 3,000 pets, "},
		"by a failure":   {func(func()) error { return errors.New("struck by lightning") }, "struck by lightning: of 3,000 pets, "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			store := &cutOff{DB: openStore(t), chunks: 1, then: func() error { return test.then(interrupt) }}
			s := newSample(1, 3000)
			s.chunk = 1000
			err := fill(ctx, store, s, io.Discard)
			all := everything(t, store)
			checkAgreement(t, all)
			if len(all.Pets) != 1000 {
				t.Errorf("got %d pets, want those of the chunk before", len(all.Pets))
			}
			want := fmt.Sprintf("%s1,000 pets, 36 categories and %s orders are stored, and nothing is half done. Add the rest with --pets 2000", test.want, grouped(int64(len(all.Orders))))
			if err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("got %v\nwant %s", err, want)
			}
		})
	}
}

// TestProgressLines: where nobody watches, a line tells now and then.
func TestProgressLines(t *testing.T) {
	var out strings.Builder
	p := newProgress(&out, 3000, "pets")
	p.add(1000)
	if out.String() != "" {
		t.Errorf("got %q at once, want nothing", out.String())
	}
	p.began, p.saidAt = p.began.Add(-2*progressEvery), p.saidAt.Add(-2*progressEvery)
	p.add(500)
	p.add(500)
	if got, want := out.String(), "1,500 of 3,000 pets, 1"; !strings.HasPrefix(got, want) || strings.Count(got, "\n") != 1 {
		t.Errorf("got %q, want one line that begins with %q", got, want)
	}
	p.end()
}

func TestGrouped(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 7: "7", 999: "999", 1000: "1,000", 12345: "12,345", 999_999: "999,999", 1_000_000_000: "1,000,000,000"} {
		if got := grouped(n); got != want {
			t.Errorf("%d: got %s, want %s", n, got, want)
		}
	}
}
