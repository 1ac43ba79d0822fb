package sample

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"testing"

	"animalstore"
	"animalstore/internal/db"
)

// content is everything in a store. Its field order is part of the digests in
// TestDeterministic.
type content struct {
	Categories []animalstore.Category
	Pets       []animalstore.Pet
	Orders     []animalstore.Order
}

func generate(s Store) content {
	all := content{Categories: s.Categories()}
	for b := range s.Batches() {
		db.Rows{Pets: b.Pets, Orders: b.Orders}.Shift(int64(len(all.Pets)), int64(len(all.Orders)))
		all.Pets, all.Orders = append(all.Pets, b.Pets...), append(all.Orders, b.Orders...)
	}
	return all
}

// checkConsistency fails the test if pets, orders and categories contradict each other
// or describe something impossible.
func checkConsistency(t *testing.T, all content) {
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
		if o.CreatedAt.Before(last.CreatedAt.Time) || o.UpdatedAt.Before(o.CreatedAt.Time) || o.UpdatedAt.After(end) {
			t.Fatalf("order %+v: want it after %+v, updated after it was created, and both before %v", o, last, end)
		}
		if placed := o.Status == animalstore.OrderPlaced; placed != (o.CreatedAt == o.UpdatedAt) {
			t.Fatalf("order %+v: want updatedAt to differ from createdAt once it has left placed", o)
		}
		orders[o.PetID], last = append(orders[o.PetID], o), o
	}
	for _, p := range all.Pets {
		if err := (animalstore.NewPet{Name: p.Name, Status: p.Status}).Validate(); err != nil || !named[p.CategoryID] {
			t.Fatalf("pet %+v: %v, named category: %t", p, err, named[p.CategoryID])
		}
		// Every order but the last was cancelled before the next was placed, and
		// the last determines the status of the pet.
		want := animalstore.PetAvailable
		of := orders[p.ID]
		for i, o := range of {
			want = o.Status.PetStatus()
			if i < len(of)-1 && (o.Status != animalstore.OrderCancelled || o.UpdatedAt.After(of[i+1].CreatedAt.Time)) {
				t.Fatalf("pet %d was ordered again while it wasn't available: %+v", p.ID, of)
			}
		}
		if p.Status != want {
			t.Fatalf("pet %+v with orders %+v: want status %s", p, of, want)
		}
		delete(orders, p.ID)
	}
	if len(orders) > 0 {
		t.Errorf("there are orders for %d pets that don't exist", len(orders))
	}
}

func TestConsistent(t *testing.T) {
	for _, pets := range []int64{1, 2, 60, 1500} {
		all := generate(Store{Seed: 3, Pets: pets, BatchSize: 700})
		checkConsistency(t, all)
		if int64(len(all.Pets)) != pets || all.Pets[0].ID != 1 || all.Pets[pets-1].ID != pets {
			t.Errorf("got %d pets, from %d to %d, want %d from 1 on", len(all.Pets), all.Pets[0].ID, all.Pets[len(all.Pets)-1].ID, pets)
		}
	}
}

// TestBatchesAreComplete: a seed that is cut off after a batch must leave a
// consistent store, so no batch may refer to another.
func TestBatchesAreComplete(t *testing.T) {
	s := Store{Seed: 1, Pets: 3000, BatchSize: 1000}
	for b := range s.Batches() {
		checkConsistency(t, content{s.Categories(), b.Pets, b.Orders})
	}
}

func TestCategoryIDs(t *testing.T) {
	ids := make([]int64, len(kinds))
	for i := range ids {
		ids[i] = int64(1000 + i)
	}
	plain, moved := generate(Store{Seed: 1, Pets: 300}), generate(Store{Seed: 1, Pets: 300, CategoryIDs: ids})
	checkConsistency(t, moved)
	for i := range plain.Pets {
		if got, want := moved.Pets[i].CategoryID, plain.Pets[i].CategoryID+999; got != want {
			t.Fatalf("pet %d: got category %d, want %d", i+1, got, want)
		}
	}
}

// TestDeterministic: a seed gives the same store everywhere and in every version, so
// that people can compare what they see.
func TestDeterministic(t *testing.T) {
	for _, test := range []struct {
		seed uint64
		pets int64
		want string
	}{
		{1, 500, "90b68bc08d313e49"}, {2, 500, "adbf967b12c6c393"}, {1, 501, "f7a8d10f2c8a713a"}, {1, 3*DefaultBatchSize + 1, "5a6d89d6582cdbaf"},
	} {
		text, err := json.Marshal(generate(Store{Seed: test.seed, Pets: test.pets}))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(text)
		if got := hex.EncodeToString(sum[:8]); got != test.want {
			t.Errorf("seed %d, %d pets: got a different store than earlier versions: %s, want %s", test.seed, test.pets, got, test.want)
		}
	}
}

// TestPhotos: the last pets have a photo, in any batch, each a different one
// that is the same every time.
func TestPhotos(t *testing.T) {
	draw := func() (pets []int64, digests []string) {
		before := int64(0)
		for b := range (Store{Seed: 3, Pets: 110, Photos: 15, BatchSize: 10}).Batches() {
			for pet, draw := range b.Photos() {
				sum := sha256.Sum256(draw().Pix)
				pets, digests = append(pets, before+pet), append(digests, string(sum[:]))
			}
			before += int64(len(b.Pets))
		}
		return pets, digests
	}
	pets, digests := draw()
	if len(pets) != 15 || pets[0] != 96 || pets[14] != 110 {
		t.Errorf("got photos of the pets %d, want 96 to 110", pets)
	}
	if _, again := draw(); !slices.Equal(digests, again) {
		t.Error("the pictures differ the second time")
	}
	slices.Sort(digests)
	if different := len(slices.Compact(digests)); different != 15 {
		t.Errorf("got %d different pictures, want 15", different)
	}
}
