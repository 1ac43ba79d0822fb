package dbtest

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"animalstore"
	"animalstore/internal/db"
)

// petWalk pages through a list and returns all of it. It calls between, unless nil,
// with each page.
func petWalk(ctx context.Context, d db.DB, q db.PetQuery, between func(page []animalstore.Pet)) (all []animalstore.Pet, err error) {
	for {
		page, err := d.Pets(ctx, q)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if len(page) < q.Limit {
			return all, nil
		}
		q.Before = page[len(page)-1].ID
		if between != nil {
			between(page)
		}
	}
}

// petFilters returns all combinations of filters.
func petFilters(ids []int64) []db.PetQuery {
	category := int64(1)
	var all []db.PetQuery
	for _, some := range [][]int64{nil, ids} {
		for _, status := range []animalstore.PetStatus{"", animalstore.PetAvailable} {
			all = append(all, db.PetQuery{IDs: some, Status: status}, db.PetQuery{IDs: some, Status: status, CategoryID: &category})
		}
	}
	return all
}

// positionsSurvive: the last pet of each page leaves the list right after it was read.
// The next page still continues after it.
func positionsSurvive(t *testing.T, d db.DB) {
	for _, what := range []struct {
		name string
		do   func(pet animalstore.Pet)
	}{
		{"is removed", func(p animalstore.Pet) { mustDeletePet(t, d, p.ID) }},
		{"is sold", func(p animalstore.Pet) {
			mustUpdatePet(t, d, p.ID, func(p *animalstore.Pet) { p.Status = animalstore.PetSold })
		}},
		{"changes its category", func(p animalstore.Pet) { mustUpdatePet(t, d, p.ID, func(p *animalstore.Pet) { p.CategoryID = 2 }) }},
	} {
		for i := range petFilters(nil) {
			var want []animalstore.Pet // newest first
			var ids []int64
			for n := range 7 {
				pet := mustCreatePet(t, d, animalstore.NewPet{Name: fmt.Sprint(n), CategoryID: 1})
				want, ids = slices.Insert(want, 0, pet), append(ids, pet.ID)
			}
			q := petFilters(ids)[i]
			q.Limit = 3
			got, err := petWalk(t.Context(), d, q, func(page []animalstore.Pet) {
				what.do(page[2])
				mustDeletePet(t, d, mustCreatePet(t, d, rex).ID)
				mustCreatePet(t, d, rex)
			})
			got = slices.DeleteFunc(got, func(p animalstore.Pet) bool { return p.ID < ids[0] }) // of the rounds before
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%+v, while the last of a page %s: %v\ngot  %+v\nwant %+v", q, what.name, err, got, want)
			}
		}
	}
}

// orderPositionsSurvive: paging through orders continues after the last of a page, even if
// that has left the list.
func orderPositionsSurvive(t *testing.T, d db.DB) {
	var want []int64 // newest first
	for i := range 7 {
		pet := mustCreatePet(t, d, animalstore.NewPet{Name: fmt.Sprint(i), CategoryID: 1})
		want = slices.Insert(want, 0, mustPlaceOrder(t, d, pet.ID).ID)
	}
	var got []int64
	q := db.OrderQuery{Statuses: animalstore.OrderStatuses[:1], Limit: 2}
	for page := mustListOrders(t, d, q); len(page) > 0; page = mustListOrders(t, d, q) {
		for _, o := range page {
			got = append(got, o.ID)
		}
		q.After = page[len(page)-1].ID
		mustMoveOrder(t, d, q.After, animalstore.OrderCancelled)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got orders %v, want %v", got, want)
	}
}
