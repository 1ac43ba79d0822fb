package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"animalstore"
)

// TestWalkWhileOthersAdd: whoever walks the pages while pets are added sees
// every pet that was there all the time exactly once.
func TestWalkWhileOthersAdd(t *testing.T) {
	s := start(t)
	before := s.add(t, some(60)...)
	slices.Reverse(before)
	sold := slices.DeleteFunc(slices.Clone(before), func(p animalstore.Pet) bool { return p.Status != animalstore.PetSold })

	var done atomic.Bool
	var adders, walkers sync.WaitGroup
	var added atomic.Int64
	for i := range 3 {
		adders.Go(func() {
			for !done.Load() {
				if _, _, err := s.db.CreatePet(t.Context(), animalstore.NewPet{Name: "new", Status: animalstore.PetStatuses[i]}, nil); err != nil {
					t.Error(err)
					return
				}
				added.Add(1)
			}
		})
	}
	for _, walk := range []struct {
		path string
		want []animalstore.Pet
	}{
		{"/v1/pets?limit=7", before}, {"/v1/pets", before}, {"/v1/pets?limit=100", before},
		{"/v1/pets?limit=3&status=sold", sold}, {"/v1/pets?status=sold", sold},
	} {
		walkers.Go(func() {
			pages, err := s.walk(t.Context(), walk.path)
			if err != nil {
				t.Errorf("%s: %v", walk.path, err)
				return
			}
			got := slices.Concat(pages...)
			if !slices.IsSortedFunc(got, func(a, b animalstore.Pet) int { return int(b.ID - a.ID) }) {
				t.Errorf("%s: got ids %d, want each once and descending", walk.path, ids(got))
			}
			old := slices.DeleteFunc(got, func(p animalstore.Pet) bool { return p.ID > before[0].ID })
			if !slices.Equal(old, walk.want) {
				t.Errorf("%s: got the old pets %d, want %d", walk.path, ids(old), ids(walk.want))
			}
		})
	}
	walkers.Wait()
	done.Store(true)
	adders.Wait()
	if added.Load() == 0 {
		t.Error("no pet was added meanwhile: the test showed nothing")
	}
}

// TestReadYourWrites: a pet is on page one from the moment its 201 is
// there, however often that page is asked for.
func TestReadYourWrites(t *testing.T) {
	s := start(t)
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			for j := range 12 {
				name := fmt.Sprintf("pet %d of %d", j, i)
				pet, _, err := s.db.CreatePet(t.Context(), animalstore.NewPet{Name: name}, nil)
				if err != nil {
					t.Error(err)
					return
				}
				for _, path := range []string{"/v1/pets?limit=100", "/v1/pets?limit=100&status=available"} {
					pages, err := s.walk(t.Context(), path)
					got := slices.Concat(pages...)
					if err != nil || !slices.ContainsFunc(got, func(p animalstore.Pet) bool { return p.ID == pet.ID && p.Name == name }) {
						t.Errorf("%s: got %d (%v), want %d among them", path, ids(got), err, pet.ID)
						return
					}
				}
			}
		})
	}
	group.Wait()
	if got := s.do(t, call{path: "/v1/pets?limit=100"}); got.status != http.StatusOK || len(got.pets(t)) != 48 {
		t.Errorf("got %d pets, want 48", len(got.pets(t)))
	}
}
