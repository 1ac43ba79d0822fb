package dbtest

import (
	"slices"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
)

// historyOfOne: the events of one resource are returned in one call, however many
// others are between them, without those of other resources with the same id.
func historyOfOne(t *testing.T, d db.DB) {
	pet := mustCreatePet(t, d, rex)
	mustPutCategory(t, d, animalstore.Category{ID: pet.ID, Name: "with the id of the pet"})
	others := func(n int) {
		t.Helper()
		together(t, 16, func(int) error {
			for range n / 16 {
				if _, _, err := d.CreatePet(t.Context(), rex, nil); err != nil {
					return err
				}
			}
			return nil
		})
	}
	others(db.MaxEventsExamined + 200)
	mustUpdatePet(t, d, pet.ID, func(p *animalstore.Pet) { p.Name = "Max" })
	order := mustPlaceOrder(t, d, pet.ID)
	others(64)
	mustMoveOrder(t, d, order.ID, animalstore.OrderCancelled)
	mustDeletePet(t, d, pet.ID)
	newest := mustPublish(t, d)

	of := db.EventQuery{Subject: animalstore.EventSubject("pet", pet.ID), Limit: 100}
	want := []string{"pet.created", "pet.updated", "pet.updated", "pet.updated", "pet.deleted"}
	for i := range want {
		want[i] = subject(animalstore.EventType(want[i]), pet.ID)
	}
	all, last, err := d.Events(t.Context(), of)
	if err != nil || !slices.Equal(types(all), want) || last != newest {
		t.Fatalf("Events(%+v) = %q, last %d, %v, want %q and last %d", of, types(all), last, err, want, newest)
	}

	var paged []animalstore.Event
	for q, calls := of, 0; q.After < newest; calls++ {
		q.Limit = 2
		page, last, err := d.Events(t.Context(), q)
		if err != nil || calls > len(want) {
			t.Fatalf("call %d: Events(%+v) = %q, last %d, %v", calls, q, types(page), last, err)
		}
		paged, q.After = append(paged, page...), last
	}
	if !slices.Equal(types(paged), want) {
		t.Errorf("in pages of two: %q, want %q", types(paged), want)
	}

	of.Types = []animalstore.EventType{animalstore.PetDeleted}
	if got, _, err := d.Events(t.Context(), of); err != nil || !slices.Equal(types(got), want[4:]) {
		t.Errorf("Events(%+v) = %q, %v, want %q", of, types(got), err, want[4:])
	}

	if _, err := d.DropEvents(t.Context(), animalstore.At(time.Now().Add(time.Hour)), int(all[1].ID-1)); err != nil {
		t.Fatal(err)
	}
	of.Types, of.After = nil, all[1].ID-1
	if got, last, err := d.Events(t.Context(), of); err != nil || !slices.Equal(types(got), want[1:]) || last != newest {
		t.Errorf("after the first was dropped: %q, last %d, %v, want %q and last %d", types(got), last, err, want[1:], newest)
	}
}
