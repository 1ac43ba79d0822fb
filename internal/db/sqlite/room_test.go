package sqlite

import (
	"fmt"
	"path/filepath"
	"testing"

	"animalstore"
	"animalstore/internal/db"
)

// TestListUsesRoom: a list of pets that fits into the caller's room allocates no other.
// What it leaves there isn't kept anywhere else.
func TestListUsesRoom(t *testing.T) {
	d := mustOpen(t, filepath.Join(t.TempDir(), "store.db"), Options{Serve: true})
	for i := range 5 {
		if _, _, err := d.CreatePet(t.Context(), animalstore.NewPet{Name: fmt.Sprint("pet ", i), CategoryID: 1}, nil); err != nil {
			t.Fatal(err)
		}
	}
	room := make([]animalstore.Pet, 4)
	for _, c := range []struct {
		limit int
		inIt  bool
	}{{4, true}, {5, false}, {1, true}} {
		pets, err := d.Pets(t.Context(), db.PetQuery{Limit: c.limit, Room: func() []animalstore.Pet { return room[:0] }})
		if err != nil || len(pets) != c.limit || pets[0].Name != "pet 4" {
			t.Fatalf("limit %d: got %+v, %v", c.limit, pets, err)
		}
		if inIt := &pets[0] == &room[0]; inIt != c.inIt {
			t.Errorf("limit %d: in the room %t, want %t", c.limit, inIt, c.inIt)
		}
	}
}
