package dbtest

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"testing"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/testenv"
)

func noCheck(*animalstore.Category) error { return nil }

func mustPutCategory(t *testing.T, d db.DB, c animalstore.Category) (created bool) {
	t.Helper()
	created, err := d.PutCategory(t.Context(), c, noCheck)
	if err != nil {
		t.Fatalf("PutCategory(%+v): %v", c, err)
	}
	return created
}

// wantCategories fails the test unless the store contains exactly these categories.
func wantCategories(t *testing.T, d db.DB, want ...animalstore.Category) {
	t.Helper()
	got, err := d.Categories(t.Context(), db.CategoryQuery{Limit: 1000})
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("Categories = %+v, %v, want %+v", got, err, want)
	}
	for _, c := range want {
		if got, err := d.Category(t.Context(), c.ID); err != nil || got != c {
			t.Errorf("Category(%d) = %+v, %v, want %+v", c.ID, got, err, c)
		}
	}
}

func categoriesComeWithPets(t *testing.T, d db.DB) {
	if got, err := d.Categories(t.Context(), db.CategoryQuery{Limit: 10}); err != nil || got == nil || len(got) != 0 {
		t.Errorf("Categories of an empty store = %#v, %v, want an empty list, not nil", got, err)
	}
	pet := mustCreatePet(t, d, animalstore.NewPet{Name: "Rex", CategoryID: 5})
	wantCategories(t, d, animalstore.Category{ID: 5})
	mustUpdatePet(t, d, pet.ID, func(p *animalstore.Pet) { p.CategoryID = -5 })
	wantCategories(t, d, animalstore.Category{ID: -5}, animalstore.Category{ID: 5})
	// A name is kept, whatever pets are added and removed.
	mustPutCategory(t, d, animalstore.Category{ID: 5, Name: "cats"})
	second := mustCreatePet(t, d, animalstore.NewPet{Name: "Max", CategoryID: 5})
	mustUpdatePet(t, d, pet.ID, func(p *animalstore.Pet) { p.CategoryID = 5 })
	mustDeletePet(t, d, pet.ID)
	mustDeletePet(t, d, second.ID)
	wantCategories(t, d, animalstore.Category{ID: -5}, animalstore.Category{ID: 5, Name: "cats"})
}

func putCategoryTells(t *testing.T, d db.DB) {
	c := animalstore.Category{ID: math.MinInt64, Name: "Vögel 🐦 'and' \\ more"}
	if !mustPutCategory(t, d, c) {
		t.Error("PutCategory of a new one: created is false")
	}
	wantCategories(t, d, c)
	before := c
	c.Name = "birds"
	created, err := d.PutCategory(t.Context(), c, func(got *animalstore.Category) error {
		if got == nil || *got != before {
			t.Errorf("check saw %+v, want %+v", got, before)
		}
		return nil
	})
	if err != nil || created {
		t.Errorf("PutCategory of a known one = %t, %v, want false", created, err)
	}
	wantCategories(t, d, c)

	refuse := errors.New("refused")
	for _, id := range []int64{c.ID, 0} {
		_, err := d.PutCategory(t.Context(), animalstore.Category{ID: id, Name: "never"}, func(got *animalstore.Category) error {
			if known := id == c.ID; (got != nil) != known {
				t.Errorf("check of category %d saw %+v", id, got)
			}
			return refuse
		})
		if !errors.Is(err, refuse) {
			t.Errorf("PutCategory: %v, want check's error", err)
		}
	}
	wantCategories(t, d, c)
	_, err = d.Category(t.Context(), 0)
	wantNotFound(t, err)
}

func categoryListsSelect(t *testing.T, d db.DB) {
	ids := []int64{math.MaxInt64, 0, -1, 7, math.MinInt64, 1 << 53, 1<<53 + 1, -7, math.MaxInt64 - 1, math.MinInt64 + 1}
	for _, id := range ids {
		mustPutCategory(t, d, animalstore.Category{ID: id, Name: "x"})
	}
	slices.Sort(ids)
	afters := []*int64{nil}
	for _, id := range append(ids, 3, -100) {
		afters = append(afters, &id)
	}
	for _, after := range afters {
		for _, limit := range []int{1, 3, 101} {
			var want []int64
			for _, id := range ids {
				if len(want) < limit && (after == nil || id > *after) {
					want = append(want, id)
				}
			}
			page, err := d.Categories(t.Context(), db.CategoryQuery{After: after, Limit: limit})
			if err != nil {
				t.Fatal(err)
			}
			var got []int64
			for _, c := range page {
				got = append(got, c.ID)
			}
			if !slices.Equal(got, want) {
				t.Errorf("after %v, limit %d: got %d, want %d", after, limit, got, want)
			}
		}
	}
}

// oneReplacesACategory: if many callers read the same name and replace it, one
// succeeds.
func oneReplacesACategory(t *testing.T, d db.DB) {
	for round := range testenv.Count(5, 200) {
		id := int64(round)
		mustPutCategory(t, d, animalstore.Category{ID: id, Name: "read"})
		var replaced, refused atomic.Int64
		together(t, 20, func(i int) error {
			_, err := d.PutCategory(t.Context(), animalstore.Category{ID: id, Name: fmt.Sprint("by ", i)}, func(c *animalstore.Category) error {
				if c == nil || c.Name != "read" {
					return errNotNow
				}
				return nil
			})
			if errors.Is(err, errNotNow) {
				refused.Add(1)
				return nil
			}
			replaced.Add(1)
			return err
		})
		if replaced.Load() != 1 || refused.Load() != 19 {
			t.Fatalf("%d replaced it and %d were refused, want 1 and 19", replaced.Load(), refused.Load())
		}
	}
}
