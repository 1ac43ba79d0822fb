package sqlite

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"animalstore"
	"animalstore/internal/db"
)

// TestLargeLists: a list waits for Large once, and only if it is large. If that fails,
// its reader can still be used.
func TestLargeLists(t *testing.T) {
	d := mustOpen(t, filepath.Join(t.TempDir(), "store.db"), Options{Serve: true})
	name := strings.Repeat("x", animalstore.MaxNameLength)
	for range 50 {
		if _, _, err := d.CreatePet(t.Context(), animalstore.NewPet{Name: name, CategoryID: 1}, nil); err != nil {
			t.Fatal(err)
		}
	}
	failure := errors.New("no turn")
	for _, c := range []struct {
		limit, calls int
		err          error
	}{{50, 1, nil}, {10, 0, nil}, {50, 1, failure}, {10, 0, failure}, {50, 1, nil}} {
		for range 2 * d.nread { // all of them
			calls := 0
			pets, err := d.Pets(t.Context(), db.PetQuery{Limit: c.limit, Large: func() error {
				calls++
				return c.err
			}})
			if failed := c.err != nil && c.calls > 0; failed != errors.Is(err, failure) || !failed && err != nil {
				t.Fatalf("limit %d failed with %v, want %v", c.limit, err, c.err)
			}
			if calls != c.calls {
				t.Fatalf("limit %d waited %d times, want %d", c.limit, calls, c.calls)
			}
			for i := range pets {
				if err == nil && (len(pets) != c.limit || pets[i].Name != name) {
					t.Fatalf("limit %d returned %d pets, the %dth named %.20q", c.limit, len(pets), i+1, pets[i].Name)
				}
			}
		}
	}
}
