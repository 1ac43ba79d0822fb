package dbtest

import (
	"errors"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
)

func mustLoad(t *testing.T, d db.DB, rows db.Rows) {
	t.Helper()
	if err := d.(db.Bulk).Load(t.Context(), rows); err != nil {
		t.Fatalf("Load: %v", err)
	}
}

func mustReserve(t *testing.T, d db.DB, pets, orders int64) (lastPet, lastOrder int64) {
	t.Helper()
	lastPet, lastOrder, err := d.(db.Bulk).Reserve(t.Context(), pets, orders)
	if err != nil {
		t.Fatalf("Reserve(%d, %d): %v", pets, orders, err)
	}
	return lastPet, lastOrder
}

// someRows returns rows of every kind, with arbitrary ids.
func someRows() db.Rows {
	created := animalstore.At(time.Date(2026, 2, 3, 4, 5, 6, 789e6, time.UTC))
	updated := animalstore.At(created.Add(90 * time.Minute))
	return db.Rows{
		Categories: []animalstore.Category{{ID: math.MinInt64}, {ID: -3, Name: "Vögel 🐦 'and' \\ more"}, {ID: math.MaxInt64, Name: "cats"}},
		Pets: []animalstore.Pet{
			{ID: 3, Name: "Zoë\t\\N\n", CategoryID: math.MaxInt64, Status: animalstore.PetAvailable},
			{ID: 4, Name: `"NULL"`, CategoryID: -3, Status: animalstore.PetPending},
			{ID: 1 << 40, Name: `\.`, CategoryID: math.MinInt64, Status: animalstore.PetSold},
		},
		Orders: []animalstore.Order{
			{ID: 7, PetID: 4, Status: animalstore.OrderCancelled, CreatedAt: created, UpdatedAt: updated},
			{ID: 9, PetID: 1 << 40, Status: animalstore.OrderDelivered, Reference: "\\N", Note: "\t\\.\n", CreatedAt: created, UpdatedAt: updated},
			{ID: 11, PetID: 4, Status: animalstore.OrderApproved, CreatedAt: updated, UpdatedAt: updated},
			{ID: 1 << 41, PetID: 999, Status: animalstore.OrderDelivered, CreatedAt: created, UpdatedAt: created}, // its pet was deleted
		},
	}
}

// wantRows fails the test unless the store contains exactly these rows. It compares lists
// with every filter, because an engine may read them from indexes.
func wantRows(t *testing.T, d db.DB, want db.Rows) {
	t.Helper()
	wantCategories(t, d, want.Categories...)
	slices.Reverse(want.Pets)
	slices.Reverse(want.Orders)
	for _, status := range append(slices.Clone(animalstore.PetStatuses), "") {
		var some []animalstore.Pet
		for _, p := range want.Pets {
			if status == "" || p.Status == status {
				some = append(some, p)
			}
		}
		if got := mustList(t, d, animalstore.PetQuery{Status: status}, db.Page{Limit: 100}); !slices.Equal(got, some) {
			t.Errorf("pets with status %q: got %+v, want %+v", status, got, some)
		}
	}
	for _, p := range want.Pets {
		if got, err := d.Pet(t.Context(), p.ID); err != nil || got != p {
			t.Errorf("Pet(%d) = %+v, %v, want %+v", p.ID, got, err, p)
		}
		if got := mustList(t, d, animalstore.PetQuery{CategoryID: &p.CategoryID}, db.Page{Limit: 100}); !slices.Contains(got, p) {
			t.Errorf("pets of category %d: got %+v, want %+v among them", p.CategoryID, got, p)
		}
	}
	got, err := d.Orders(t.Context(), animalstore.OrderQuery{}, db.Page{Limit: 100})
	if err != nil || !slices.Equal(got, want.Orders) {
		t.Errorf("Orders = %+v, %v, want %+v", got, err, want.Orders)
	}
	for _, o := range want.Orders {
		if got, err := d.Order(t.Context(), o.ID); err != nil || got != o {
			t.Errorf("Order(%d) = %+v, %v, want %+v", o.ID, got, err, o)
		}
		of, err := d.Orders(t.Context(), animalstore.OrderQuery{PetID: o.PetID, Statuses: []animalstore.OrderStatus{o.Status}}, db.Page{Limit: 100})
		if err != nil || !slices.Equal(of, []animalstore.Order{o}) {
			t.Errorf("%s orders of pet %d = %+v, %v, want %+v", o.Status, o.PetID, of, err, o)
		}
	}
}

func loadedReadsBack(t *testing.T, d db.DB) {
	mustLoad(t, d, db.Rows{}) // loading nothing is fine too
	before, stable := d.Generation()
	mustLoad(t, d, someRows())
	if after, _ := d.Generation(); stable && after == before {
		t.Errorf("the generation is %d before and after", after)
	}
	wantRows(t, d, someRows())
	log := &eventLog{d: d}
	log.want(t, "load", []string{})
}

func loadedTakesPart(t *testing.T, d db.DB) {
	mustLoad(t, d, someRows())
	now := animalstore.At(time.Now())
	_, _, err := d.PlaceOrder(t.Context(), animalstore.NewOrder{PetID: 4}, now, nil)
	wantCode(t, err, animalstore.PetNotAvailable)
	mustUpdateOrder := func(id int64, to animalstore.OrderStatus) {
		t.Helper()
		if _, err := d.UpdateOrder(t.Context(), id, func(o *animalstore.Order) error { return o.Move(to, now) }); err != nil {
			t.Fatalf("UpdateOrder(%d): %v", id, err)
		}
	}
	err = d.DeletePet(t.Context(), 4, func(p *animalstore.Pet, ordered bool) error { return p.CheckRemovable(ordered) })
	wantCode(t, err, animalstore.InvalidTransition)
	mustUpdateOrder(11, animalstore.OrderDelivered)
	if pet, err := d.Pet(t.Context(), 4); err != nil || pet.Status != animalstore.PetSold {
		t.Errorf("Pet(4) = %+v, %v, want it sold", pet, err)
	}
	rows := someRows()
	order, _, err := d.PlaceOrder(t.Context(), animalstore.NewOrder{PetID: 3}, now, nil)
	if last := rows.Orders[len(rows.Orders)-1].ID; err != nil || order.ID <= last {
		t.Errorf("PlaceOrder(3) = %+v, %v, want an id above %d", order, err, last)
	}
	pet := mustCreatePet(t, d, animalstore.NewPet{Name: "next", CategoryID: 1})
	if last := rows.Pets[len(rows.Pets)-1].ID; pet.ID <= last {
		t.Errorf("the next pet has id %d, want more than %d", pet.ID, last)
	}
}

func reservedIsReserved(t *testing.T, d db.DB) {
	if pet, order := mustReserve(t, d, 0, 0); pet != 0 || order != 0 {
		t.Errorf("the last ids of an empty store: got %d and %d, want 0", pet, order)
	}
	first := mustCreatePet(t, d, animalstore.NewPet{Name: "first", CategoryID: 1})
	pet, order := mustReserve(t, d, 10, 5)
	if pet != first.ID || order != 0 {
		t.Errorf("got ids reserved after %d and %d, want after %d and 0", pet, order, first.ID)
	}
	if pet2, order2 := mustReserve(t, d, 0, 0); pet2 != pet+10 || order2 != order+5 {
		t.Errorf("the last ids are %d and %d, want %d and %d", pet2, order2, pet+10, order+5)
	}
	next := mustCreatePet(t, d, animalstore.NewPet{Name: "next", CategoryID: 1})
	if next.ID <= pet+10 {
		t.Errorf("another caller got id %d, but ids are reserved up to %d", next.ID, pet+10)
	}
	placed, _, err := d.PlaceOrder(t.Context(), animalstore.NewOrder{PetID: next.ID}, animalstore.At(time.Now()), nil)
	if err != nil || placed.ID <= order+5 {
		t.Errorf("another caller got order id %d (%v), but ids are reserved up to %d", placed.ID, err, order+5)
	}
	// Reserved ids can be used later without assigning an id twice.
	mustLoad(t, d, db.Rows{
		Pets:   []animalstore.Pet{{ID: pet + 1, Name: "reserved", CategoryID: 1, Status: animalstore.PetPending}},
		Orders: []animalstore.Order{{ID: order + 1, PetID: pet + 1, Status: animalstore.OrderPlaced, CreatedAt: placed.CreatedAt, UpdatedAt: placed.CreatedAt}},
	})
	if after := mustCreatePet(t, d, animalstore.NewPet{Name: "after", CategoryID: 1}); after.ID <= next.ID {
		t.Errorf("the next pet has id %d, want more than %d", after.ID, next.ID)
	}
}

func reserveAtOnce(t *testing.T, d db.DB) {
	var mu sync.Mutex
	owner := map[int64]int{}
	take := func(i int, ids ...int64) {
		mu.Lock()
		defer mu.Unlock()
		for _, id := range ids {
			if other, taken := owner[id]; taken {
				t.Errorf("%d and %d both got id %d", other, i, id)
			}
			owner[id] = i
		}
	}
	together(t, 20, func(i int) error {
		if i%2 == 0 {
			pet, _, err := d.CreatePet(t.Context(), animalstore.NewPet{Name: "created", CategoryID: 1}, nil)
			take(i, pet.ID)
			return err
		}
		last, _, err := d.(db.Bulk).Reserve(t.Context(), 3, 3)
		take(i, last+1, last+2, last+3)
		return err
	})
}

func refusedLoads(t *testing.T, d db.DB) {
	mustLoad(t, d, someRows())
	now := animalstore.At(time.Now())
	order := func(id, petID int64, status animalstore.OrderStatus) animalstore.Order {
		return animalstore.Order{ID: id, PetID: petID, Status: status, CreatedAt: now, UpdatedAt: now}
	}
	never := animalstore.Category{ID: 50, Name: "never"}
	for what, rows := range map[string]db.Rows{
		"a taken category": {Categories: []animalstore.Category{never, {ID: -3, Name: "x"}}},
		"a taken pet": {Categories: []animalstore.Category{never}, Pets: []animalstore.Pet{
			{ID: 50, Name: "never", CategoryID: 50, Status: animalstore.PetSold}, {ID: 3, Name: "x", CategoryID: 50, Status: animalstore.PetSold},
		}},
		"a taken order": {Orders: []animalstore.Order{order(50, 50, animalstore.OrderDelivered), order(9, 50, animalstore.OrderDelivered)}},
		"open":          {Categories: []animalstore.Category{never}, Orders: []animalstore.Order{order(50, 4, animalstore.OrderPlaced)}},
	} {
		if err := d.(db.Bulk).Load(t.Context(), rows); err == nil || errors.Is(err, db.ErrExists) != (what != "open") {
			t.Errorf("%s: got %v, want it refused", what, err)
		}
		wantRows(t, d, someRows())
	}
}

// loadedPhotos: photos are loaded with their images, without events, and count towards the
// limit of all photos.
func loadedPhotos(t *testing.T, d db.DB) {
	pet := mustCreatePet(t, d, animalstore.NewPet{Name: "Rex", CategoryID: 1})
	log := &eventLog{d: d}
	log.next(t)
	loaded := []db.NewPhoto{newPhoto(pet.ID, 10, 1), newPhoto(pet.ID, db.PartSize+1, 2)}
	mustLoad(t, d, db.Rows{Photos: loaded})
	log.want(t, "loaded photos", []string{})
	all, err := d.Photos(t.Context(), animalstore.PhotoQuery{PetIDs: []int64{pet.ID}}, db.Page{Limit: 10})
	if err != nil || len(all) != len(loaded) {
		t.Fatalf("got photos %+v, %v, want %d", all, err, len(loaded))
	}
	for i, photo := range all {
		wantImages(t, d, photo, loaded[i])
	}
	more := newPhoto(pet.ID, 10, 3)
	limit := loaded[0].Stored() + loaded[1].Stored() + more.Stored()
	_, _, err = d.AddPhoto(t.Context(), more, limit-1, nil)
	wantCode(t, err, animalstore.StorageFull)
	if _, _, err := d.AddPhoto(t.Context(), more, limit, nil); err != nil {
		t.Errorf("a photo that fits: %v", err)
	}
}
