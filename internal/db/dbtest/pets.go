package dbtest

import (
	"fmt"
	"strconv"
	"testing"

	"animalstore"
	"animalstore/internal/db"
)

// listIsOneState: a list shows one state of the store, even if its pets change
// meanwhile.
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
			pets := mustList(t, d, db.PetQuery{IDs: ids, Limit: 100})
			ofB, _ := strconv.Atoi(pets[0].Name)
			ofA, _ := strconv.Atoi(pets[len(pets)-1].Name)
			if ofA != ofB && ofA != ofB+1 {
				t.Fatalf("%s has %d and %d, which the store never had together", name, ofA, ofB)
			}
		}
	}
}
