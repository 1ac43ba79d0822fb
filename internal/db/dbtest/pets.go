package dbtest

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"testing"

	"animalstore"
	"animalstore/internal/db"
)

func listSelects(t *testing.T, d db.DB) {
	if got := mustList(t, d, db.PetQuery{Limit: 10}); len(got) != 0 {
		t.Errorf("an empty store lists %+v", got)
	}
	all := fill(t, d, 60)
	befores := []int64{0, 1, all[len(all)-1].ID, all[len(all)/2].ID, all[0].ID, all[0].ID + 1, math.MaxInt64}
	some := []int64{all[40].ID, all[3].ID, all[3].ID, all[59].ID, all[17].ID, all[18].ID, all[19].ID, math.MaxInt64, math.MinInt64, 0, -1}
	for _, status := range append([]animalstore.PetStatus{""}, animalstore.PetStatuses...) {
		for _, category := range []*int64{nil, new(int64(0)), new(int64(3)), new(int64(math.MaxInt64))} {
			for _, ids := range [][]int64{nil, some, some[:1], some[7:8]} {
				for _, before := range befores {
					for _, limit := range []int{2, 101} {
						q := db.PetQuery{IDs: ids, CategoryID: category, Status: status, Before: before, Limit: limit}
						if got, want := mustList(t, d, q), selected(all, q); !slices.Equal(got, want) {
							t.Errorf("Pets(%+v)\ngot  %+v\nwant %+v", q, got, want)
						}
					}
				}
			}
		}
	}
}

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
