package dbtest

import (
	"fmt"
	"strconv"
	"testing"

	"animalstore"
	"animalstore/internal/db"
)

func mustUpdatePet(t *testing.T, d db.DB, id int64, change func(*animalstore.Pet)) animalstore.Pet {
	t.Helper()
	pet, err := d.UpdatePet(t.Context(), id, func(p *animalstore.Pet, _ bool) error { change(p); return nil })
	if err != nil {
		t.Fatalf("UpdatePet(%d): %v", id, err)
	}
	return pet
}

func mustDeletePet(t *testing.T, d db.DB, id int64) {
	t.Helper()
	if err := d.DeletePet(t.Context(), id, allow); err != nil {
		t.Fatalf("DeletePet(%d): %v", id, err)
	}
}

// allow is a check that always passes.
func allow(*animalstore.Pet, bool) error { return nil }

// wantPet fails the test unless every way to read the pet returns it.
func wantPet(t *testing.T, d db.DB, want animalstore.Pet) {
	t.Helper()
	if got, err := d.Pet(t.Context(), want.ID); err != nil || got != want {
		t.Errorf("Pet(%d) = %+v, %v, want %+v", want.ID, got, err, want)
	}
	for _, q := range []animalstore.PetQuery{
		{}, {Status: want.Status}, {CategoryID: &want.CategoryID}, {CategoryID: &want.CategoryID, Status: want.Status}, {IDs: []int64{want.ID}},
		{IDs: []int64{want.ID}, CategoryID: &want.CategoryID, Status: want.Status},
	} {
		if page := mustList(t, d, q, db.Page{After: want.ID + 1, Limit: 1}); len(page) != 1 || page[0] != want {
			t.Errorf("Pets(%+v) = %+v, want %+v", q, page, want)
		}
	}
}

// listIsOneState: a list shows one state of the store, even if its pets change
// during the read.
func listIsOneState(t *testing.T, d db.DB) {
	a := mustCreatePet(t, d, animalstore.NewPet{Name: "0", CategoryID: 1, Status: animalstore.PetAvailable}).ID
	ids := []int64{a}
	for _, p := range fill(t, d, 98) { // so that reading the list takes a while
		ids = append(ids, p.ID)
	}
	b := mustCreatePet(t, d, animalstore.NewPet{Name: "0", CategoryID: 1, Status: animalstore.PetAvailable}).ID
	ids = append(ids, b)
	done := make(chan error, 1)
	go func() {
		for n := range 300 {
			for _, id := range []int64{a, b} { // a is ahead of b by at most one
				_, err := d.UpdatePet(t.Context(), id, func(p *animalstore.Pet, _ bool) error { p.Name = fmt.Sprint(n); return nil })
				if err != nil {
					done <- err
					return
				}
			}
		}
		done <- nil
	}()
	for {
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("UpdatePet during the lists: %v", err)
			}
			return
		default:
		}
		for name, ids := range map[string][]int64{"a page": nil, "a list of ids": ids} {
			pets := mustList(t, d, animalstore.PetQuery{IDs: ids}, db.Page{Limit: 100})
			ofB, _ := strconv.Atoi(pets[0].Name)
			ofA, _ := strconv.Atoi(pets[len(pets)-1].Name)
			if ofA != ofB && ofA != ofB+1 {
				t.Fatalf("%s has %d and %d, which the store never had together", name, ofA, ofB)
			}
		}
	}
}
