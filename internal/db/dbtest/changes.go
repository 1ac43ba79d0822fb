package dbtest

import (
	"fmt"
	"slices"
	"strings"
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
	for _, q := range []db.PetQuery{
		{}, {Status: want.Status}, {CategoryID: &want.CategoryID}, {CategoryID: &want.CategoryID, Status: want.Status}, {IDs: []int64{want.ID}},
		{IDs: []int64{want.ID}, CategoryID: &want.CategoryID, Status: want.Status},
	} {
		q.Before, q.Limit = want.ID+1, 1
		if page := mustList(t, d, q); len(page) != 1 || page[0] != want {
			t.Errorf("Pets(%+v) = %+v, want %+v", q, page, want)
		}
	}
}

// changesAtOnce: many callers append to the same name. No change may be lost.
func changesAtOnce(t *testing.T, d db.DB) {
	const callers, each = 16, 10
	pet := mustCreatePet(t, d, animalstore.NewPet{Name: "x", CategoryID: 1})
	together(t, callers, func(i int) error {
		for n := range each {
			_, err := d.UpdatePet(t.Context(), pet.ID, func(p *animalstore.Pet, _ bool) error {
				p.Name += fmt.Sprintf(" %d.%d", i, n)
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	got, err := d.Pet(t.Context(), pet.ID)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Fields(got.Name)
	for i := range callers {
		for n := range each {
			if part := fmt.Sprintf("%d.%d", i, n); !slices.Contains(parts, part) {
				t.Errorf("the change %s is lost", part)
			}
		}
	}
	if len(parts) != 1+callers*each {
		t.Errorf("got %d changes, want %d", len(parts)-1, callers*each)
	}
}
