package dbtest

import (
	"math"
	"slices"
	"testing"

	"animalstore"
	"animalstore/internal/db"
)

// batchOf returns n equal pets in two categories.
func batchOf(n int) []animalstore.NewPet {
	pets := make([]animalstore.NewPet, n)
	for i := range pets {
		pets[i] = animalstore.NewPet{Name: "goldfish", CategoryID: int64(i % 2)}
	}
	return pets
}

func batchIsAdded(t *testing.T, d db.DB) {
	log := &eventLog{d: d}
	batch := batchOf(animalstore.MaxPetBatch)
	batch[3] = animalstore.NewPet{Name: "<Zoë> \u2028", CategoryID: 1, Status: animalstore.PetSold}
	retry := retryOf("a", "batch")
	retry.Operation = "createPetBatch"
	created, replayed, err := d.CreatePets(t.Context(), batch, retry)
	if err != nil || replayed || len(created) != len(batch) {
		t.Fatalf("CreatePets: got %d pets, replayed %t, %v", len(created), replayed, err)
	}
	events := types(log.next(t))
	for i, pet := range created {
		want := batch[i].Pet()
		want.ID = pet.ID
		if pet != want || pet.ID <= 0 || i > 0 && pet.ID <= created[i-1].ID {
			t.Fatalf("pet %d: got %+v, want %+v with a higher id than the one before", i, pet, want)
		}
		if !slices.Contains(events, subject("pet.created", pet.ID)) {
			t.Errorf("pet %d has no event", pet.ID)
		}
	}
	if len(events) != len(created)+2 || !slices.Contains(events, "category.updated category/0") || !slices.Contains(events, "category.updated category/1") {
		t.Errorf("got events %q, want one of each pet and category", events)
	}
	stored := mustList(t, d, animalstore.PetQuery{}, db.Page{Limit: 1000})
	slices.Reverse(stored)
	if !slices.Equal(stored, created) {
		t.Errorf("got %+v stored, want %+v", stored, created)
	}
	again, replayed, err := d.CreatePets(t.Context(), batch, retry)
	if err != nil || !replayed || !slices.Equal(again, created) {
		t.Errorf("again: got %+v, replayed %t, %v, want %+v replayed", again, replayed, err, created)
	}
	_, _, err = d.CreatePets(t.Context(), batch[1:], otherwise(func(o *db.Idempotency) { o.BodyHash[0]++ }).of(retry))
	wantCode(t, err, animalstore.IdempotencyKeyReused)
	log.want(t, "replay and refusal", []string{})
}

// batchFails: a batch that runs out of ids, half of it inserted, adds nothing.
func batchFails(t *testing.T, d db.DB) {
	if _, _, err := d.(db.Bulk).Reserve(t.Context(), math.MaxInt64-30, 0); err != nil {
		t.Fatal(err)
	}
	first, _, err := d.CreatePets(t.Context(), batchOf(20), nil)
	if err != nil {
		t.Fatal(err)
	}
	log := &eventLog{d: d}
	log.next(t)
	if _, _, err := d.CreatePets(t.Context(), batchOf(20), retryOf("a", "batch")); err == nil {
		t.Error("a batch got more ids than there are")
	}
	log.want(t, "failed batch", []string{})
	if got := mustList(t, d, animalstore.PetQuery{}, db.Page{Limit: 100}); len(got) != len(first) {
		t.Errorf("got %d pets, want the %d of the first batch", len(got), len(first))
	}
}
