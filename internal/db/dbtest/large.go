package dbtest

import (
	"errors"
	"strings"
	"testing"

	"animalstore"
	"animalstore/internal/db"
)

// largeLists: a list waits for Large once, and only if it is large. If that fails, the
// list fails with its error, and the connection can still be used.
func largeLists(t *testing.T, d db.DB) {
	name := strings.Repeat("x", animalstore.MaxNameLength)
	for range 50 {
		mustCreatePet(t, d, animalstore.NewPet{Name: name, CategoryID: 1, Status: animalstore.PetAvailable})
	}
	noTurn := errors.New("no turn")
	for _, c := range []struct {
		limit, calls int
		err          error
	}{{50, 1, nil}, {10, 0, nil}, {50, 1, noTurn}, {10, 0, noTurn}, {50, 1, nil}} {
		want := c.err
		if c.calls == 0 {
			want = nil
		}
		for range 20 { // more than there are connections
			calls := 0
			pets, err := d.Pets(t.Context(), db.PetQuery{Limit: c.limit, Large: func() error {
				calls++
				return c.err
			}})
			if !errors.Is(err, want) {
				t.Fatalf("limit %d failed with %v, want %v", c.limit, err, want)
			}
			if calls != c.calls {
				t.Fatalf("limit %d called Large %d times, want %d", c.limit, calls, c.calls)
			}
			if err == nil && (len(pets) != c.limit || pets[0].Name != name || pets[c.limit-1].Name != name) {
				t.Fatalf("limit %d returned %d pets, or others", c.limit, len(pets))
			}
		}
	}
}
