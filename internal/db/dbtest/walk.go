package dbtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/testenv"
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
			for n := range 10 {
				pet := mustCreatePet(t, d, animalstore.NewPet{Name: fmt.Sprint(n), CategoryID: 1})
				want, ids = slices.Insert(want, 0, pet), append(ids, pet.ID)
			}
			q := petFilters(ids)[i]
			q.Limit = 3
			got, err := petWalk(t.Context(), d, q, func(page []animalstore.Pet) { what.do(page[2]) })
			got = slices.DeleteFunc(got, func(p animalstore.Pet) bool { return p.ID < ids[0] }) // of the rounds before
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%+v, while the last of a page %s: %v\ngot  %+v\nwant %+v", q, what.name, err, got, want)
			}
		}
	}
}

// walksBesideChanges: while others add, change and remove pets, paging returns each pet
// that matches throughout exactly once, and none that doesn't match.
func walksBesideChanges(t *testing.T, d db.DB) {
	const every = 120
	var still, moving []animalstore.Pet // still ones are never changed
	for i := range every {
		pet := mustCreatePet(t, d, animalstore.NewPet{Name: fmt.Sprint(i), CategoryID: int64(1 + i%2), Status: []animalstore.PetStatus{"available", "available", "pending"}[i%3]})
		if i%4 == 0 {
			moving = append(moving, pet)
		} else {
			still = slices.Insert(still, 0, pet)
		}
	}
	var ids []int64
	for _, p := range append(slices.Clone(still), moving...) {
		if len(ids) < 100 {
			ids = append(ids, p.ID)
		}
	}
	filters := petFilters(ids)
	const changers = 4
	var walking atomic.Int64
	walking.Store(int64(len(filters)))
	together(t, changers+len(filters), func(i int) error {
		if i < changers {
			for n := 0; walking.Load() > 0; n++ {
				if err := stir(t, d, moving, rand.New(rand.NewPCG(uint64(i), uint64(n)))); err != nil {
					return err
				}
			}
			return nil
		}
		defer walking.Add(-1)
		for walk := range testenv.Count(3, 200) {
			q := filters[i-changers]
			q.Limit = 3 + 2*walk%7
			if err := walkSeesAll(t.Context(), d, q, still); err != nil {
				return err
			}
		}
		return nil
	})
}

// stir changes something about the moving pets, or adds a pet, which half of the time is
// removed.
func stir(t *testing.T, d db.DB, moving []animalstore.Pet, random *rand.Rand) error {
	id := moving[random.IntN(len(moving))].ID
	switch random.IntN(4) {
	case 0:
		pet, _, err := d.CreatePet(t.Context(), animalstore.NewPet{Name: "new", CategoryID: 1 + random.Int64N(2), Status: animalstore.PetStatuses[random.IntN(3)]}, nil)
		if err != nil || random.IntN(2) == 0 {
			return err
		}
		return d.DeletePet(t.Context(), pet.ID, allow)
	case 1:
		_, err := d.UpdatePet(t.Context(), id, func(p *animalstore.Pet, _ bool) error { p.CategoryID = 3 - p.CategoryID; return nil })
		return err
	default:
		_, err := d.UpdatePet(t.Context(), id, func(p *animalstore.Pet, _ bool) error {
			p.Status = animalstore.PetStatuses[random.IntN(3)]
			return nil
		})
		return err
	}
}

func walkSeesAll(ctx context.Context, d db.DB, q db.PetQuery, still []animalstore.Pet) error {
	got, err := petWalk(ctx, d, q, nil)
	if err != nil {
		return err
	}
	whole := q
	whole.Limit, whole.Before = len(got)+len(still), 0
	if matching := selected(got, whole); len(matching) != len(got) {
		return fmt.Errorf("Pets(%+v) listed pets that don't match: %+v", q, got)
	}
	for i := 1; i < len(got); i++ {
		if got[i].ID >= got[i-1].ID {
			return fmt.Errorf("Pets(%+v): id %d came after id %d", q, got[i].ID, got[i-1].ID)
		}
	}
	got = slices.DeleteFunc(got, func(p animalstore.Pet) bool { return !slices.Contains(still, p) })
	if want := selected(still, whole); !slices.Equal(got, want) {
		return fmt.Errorf("Pets(%+v): unchanged pets seen\n     %+v\nwant %+v", q, got, want)
	}
	return nil
}

// orderWalksBesideChanges is walksBesideChanges for orders, which change but are never
// removed.
func orderWalksBesideChanges(t *testing.T, d db.DB) {
	pet := mustCreatePet(t, d, rex)
	var still []animalstore.Order // newest first
	for range 30 {
		order := mustPlaceOrder(t, d, pet.ID)
		still = slices.Insert(still, 0, mustMoveOrder(t, d, order.ID, animalstore.OrderCancelled))
	}
	var walking atomic.Int64
	queries := []db.OrderQuery{{}, {PetID: pet.ID}, {Status: animalstore.OrderCancelled}, {PetID: pet.ID, Status: animalstore.OrderCancelled}}
	walking.Store(int64(len(queries)))
	together(t, 1+len(queries), func(i int) error {
		if i == 0 {
			for walking.Load() > 0 {
				order, _, err := d.PlaceOrder(t.Context(), pet.ID, noon, nil)
				if err != nil {
					return err
				}
				if _, err := d.UpdateOrder(t.Context(), order.ID, func(o *animalstore.Order) error { return o.Move(animalstore.OrderCancelled, later) }); err != nil {
					return err
				}
			}
			return nil
		}
		defer walking.Add(-1)
		for range testenv.Count(3, 200) {
			q, got := queries[i-1], []animalstore.Order{}
			q.Limit = 4
			for {
				page, err := d.Orders(t.Context(), q)
				if err != nil {
					return err
				}
				got = append(got, page...)
				if len(page) < q.Limit {
					break
				}
				q.Before = page[len(page)-1].ID
			}
			got = slices.DeleteFunc(got, func(o animalstore.Order) bool { return o.ID > still[0].ID })
			if !slices.Equal(got, still) {
				return fmt.Errorf("Orders(%+v): unchanged orders seen\n     %+v\nwant %+v", queries[i-1], got, still)
			}
		}
		return nil
	})
}
