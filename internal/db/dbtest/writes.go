package dbtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/testenv"
)

// cancelledWrites: a write whose context had ended before it began changes nothing and has
// no event.
func cancelledWrites(t *testing.T, d db.DB) {
	pet := mustCreatePet(t, d, animalstore.NewPet{Name: "kept", CategoryID: 1})
	order := mustPlaceOrder(t, d, mustCreatePet(t, d, rex).ID)
	key := mustCreateKey(t, d, plainKey(t, "kept"), "kept")
	lastPet, lastOrder := mustReserve(t, d, 0, 0)
	log := &eventLog{d: d}
	log.next(t)
	for name, write := range map[string]func(context.Context) error{
		"CreatePet": func(ctx context.Context) error { _, _, err := d.CreatePet(ctx, rex, nil); return err },
		"UpdatePet": func(ctx context.Context) error {
			_, err := d.UpdatePet(ctx, pet.ID, func(p *animalstore.Pet, _ bool) error { p.Name = "never"; return nil })
			return err
		},
		"PlaceOrder": func(ctx context.Context) error {
			_, _, err := d.PlaceOrder(ctx, animalstore.NewOrder{PetID: pet.ID}, noon, nil)
			return err
		},
		"CreateKey": func(ctx context.Context) error {
			_, err := d.CreateKey(ctx, plainKey(t, "never"), hashOf("never"), noon)
			return err
		},
		"Load": func(ctx context.Context) error {
			return d.(db.Bulk).Load(ctx, db.Rows{Categories: []animalstore.Category{{ID: 50, Name: "never"}}})
		},
		"Reserve":    func(ctx context.Context) error { _, _, err := d.(db.Bulk).Reserve(ctx, 5, 5); return err },
		"DropEvents": func(ctx context.Context) error { _, err := d.DropEvents(ctx, noon, 1); return err },
	} {
		// Repeated, because an engine that selects among several ready channels might be
		// right by chance.
		for range 20 {
			if err := write(cancelled(t)); !errors.Is(err, context.Canceled) {
				t.Fatalf("%s: %v, want context.Canceled", name, err)
			}
		}
	}
	log.want(t, "cancelled writes", []string{})
	if p, o := mustReserve(t, d, 0, 0); p != lastPet || o != lastOrder {
		t.Errorf("the last ids are %d and %d, want %d and %d", p, o, lastPet, lastOrder)
	}
	wantCategories(t, d, animalstore.Category{ID: 1})
	wantPet(t, d, pet)
	wantOrder(t, d, order)
	wantFound(t, d, "kept", key)
}

// generationHolds reads while others write and records the results in each stable
// generation: no two reads of one generation may differ.
func generationHolds(t *testing.T, d db.DB) {
	const writers, readers = 2, 4
	each := testenv.Count(50, 1500)
	type seen struct{ all, sold int64 } // the newest ids
	var mu sync.Mutex
	outcomes := map[uint64]seen{}
	var done atomic.Int64
	together(t, writers+readers, func(i int) error {
		if i < writers {
			defer done.Add(1)
			for range each {
				if _, _, err := d.CreatePet(t.Context(), animalstore.NewPet{Name: "seen", CategoryID: 1, Status: animalstore.PetSold}, nil); err != nil {
					return err
				}
			}
			return nil
		}
		for done.Load() < writers {
			generation, stable := d.Generation()
			var got seen
			for status, id := range map[animalstore.PetStatus]*int64{"": &got.all, animalstore.PetSold: &got.sold} {
				page, err := d.Pets(t.Context(), animalstore.PetQuery{Status: status}, db.Page{Limit: 1})
				if err != nil {
					return err
				}
				if len(page) > 0 {
					*id = page[0].ID
				}
			}
			if after, _ := d.Generation(); !stable || after != generation {
				continue
			}
			mu.Lock()
			first, known := outcomes[generation]
			outcomes[generation] = got
			mu.Unlock()
			if known && first != got {
				return fmt.Errorf("generation %d showed %+v and %+v", generation, first, got)
			}
		}
		return nil
	})
}

// panickedChange: a panic in one caller's function affects only that caller.
func panickedChange(t *testing.T, d db.DB) {
	rex := mustCreatePet(t, d, animalstore.NewPet{Name: "Rex", CategoryID: 1})
	func() {
		defer func() { recover() }() // an engine may pass it on to the caller
		pet, err := d.UpdatePet(t.Context(), rex.ID, func(p *animalstore.Pet, _ bool) error {
			p.Name = "changed"
			panic("a mistake")
		})
		if err == nil {
			t.Errorf("UpdatePet with a change that panics = %+v, want an error", pet)
		}
	}()
	if got, err := d.Pet(t.Context(), rex.ID); err != nil || got != rex {
		t.Errorf("Pet = %+v, %v, want it unchanged: %+v", got, err, rex)
	}
	mustCreatePet(t, d, animalstore.NewPet{Name: "Max", CategoryID: 1})
}
