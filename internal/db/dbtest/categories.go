package dbtest

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/testenv"
)

func mustPutCategory(t *testing.T, d db.DB, c animalstore.Category) (created bool) {
	t.Helper()
	created, err := d.PutCategory(t.Context(), c, func(*animalstore.Category) error { return nil })
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
