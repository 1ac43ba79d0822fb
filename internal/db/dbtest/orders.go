package dbtest

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/testenv"
)

func mustPlaceOrder(t *testing.T, d db.DB, petID int64) animalstore.Order {
	t.Helper()
	order, _, err := d.PlaceOrder(t.Context(), animalstore.NewOrder{PetID: petID}, noon, nil)
	if err != nil {
		t.Fatalf("PlaceOrder(%d): %v", petID, err)
	}
	return order
}

func mustMoveOrder(t *testing.T, d db.DB, id int64, to animalstore.OrderStatus) animalstore.Order {
	t.Helper()
	order, err := d.UpdateOrder(t.Context(), id, func(o *animalstore.Order) error { return o.Move(to, later) })
	if err != nil {
		t.Fatalf("move order %d to %s: %v", id, to, err)
	}
	return order
}

var later = animalstore.At(noon.Add(time.Hour + time.Millisecond))

// wantOrder fails the test unless every way to read the order returns it.
func wantOrder(t *testing.T, d db.DB, want animalstore.Order) {
	t.Helper()
	if got, err := d.Order(t.Context(), want.ID); err != nil || got != want {
		t.Errorf("Order(%d) = %+v, %v, want %+v", want.ID, got, err, want)
	}
	only := []animalstore.OrderStatus{want.Status}
	for _, q := range []animalstore.OrderQuery{{}, {Statuses: only}, {PetID: want.PetID}, {PetID: want.PetID, Statuses: only}, {Statuses: animalstore.OrderStatuses, Reference: want.Reference}} {
		if page := mustListOrders(t, d, q, db.Page{After: want.ID + 1, Limit: 1}); len(page) != 1 || page[0] != want {
			t.Errorf("Orders(%+v) = %+v, want %+v", q, page, want)
		}
	}
}

func mustListOrders(t *testing.T, d db.DB, q animalstore.OrderQuery, page db.Page) []animalstore.Order {
	t.Helper()
	orders, err := d.Orders(t.Context(), q, page)
	if err != nil {
		t.Fatalf("Orders(%+v): %v", q, err)
	}
	return orders
}

// orderInStatus creates a pet and an order for it with the given status.
func orderInStatus(t *testing.T, d db.DB, status animalstore.OrderStatus) (animalstore.Pet, animalstore.Order) {
	t.Helper()
	pet := mustCreatePet(t, d, animalstore.NewPet{Name: "for " + string(status), CategoryID: 1})
	order := mustPlaceOrder(t, d, pet.ID)
	steps := map[animalstore.OrderStatus][]animalstore.OrderStatus{
		animalstore.OrderApproved:  {animalstore.OrderApproved},
		animalstore.OrderDelivered: {animalstore.OrderApproved, animalstore.OrderDelivered},
		animalstore.OrderCancelled: {animalstore.OrderCancelled},
	}
	for _, step := range steps[status] {
		order = mustMoveOrder(t, d, order.ID, step)
	}
	pet.Status = status.PetStatus()
	return pet, order
}

// oneOrderWins: however many callers order a pet at once, one succeeds.
func oneOrderWins(t *testing.T, d db.DB) {
	for round := range testenv.Count(5, 1000) {
		pet := mustCreatePet(t, d, animalstore.NewPet{Name: "wanted", CategoryID: 1})
		var won, refused, winner atomic.Int64
		together(t, 100, func(int) error {
			order, _, err := d.PlaceOrder(t.Context(), animalstore.NewOrder{PetID: pet.ID}, noon, nil)
			switch {
			case err == nil:
				won.Add(1)
				winner.Store(order.ID)
			case hasCode(err, animalstore.PetNotAvailable):
				refused.Add(1)
			default:
				return fmt.Errorf("PlaceOrder: %w", err)
			}
			return nil
		})
		orders := mustListOrders(t, d, animalstore.OrderQuery{PetID: pet.ID}, db.Page{Limit: 100})
		if won.Load() != 1 || refused.Load() != 99 || len(orders) != 1 || orders[0].ID != winner.Load() {
			t.Fatalf("round %d: %d won, %d refused, orders are %+v; want one to win and to be stored", round, won.Load(), refused.Load(), orders)
		}
		pet.Status = animalstore.PetPending
		wantPet(t, d, pet)
	}
}

// orderTextsChange: reference and note of an order change in any status, with its event.
// They leave its pet alone, even if that has another order by now.
func orderTextsChange(t *testing.T, d db.DB) {
	longReference, longNote := strings.Repeat("🐶", animalstore.MaxReferenceLength), strings.Repeat("🐶", animalstore.MaxNoteLength)
	for _, status := range animalstore.OrderStatuses {
		pet, order := orderInStatus(t, d, status)
		if status == animalstore.OrderCancelled {
			mustPlaceOrder(t, d, pet.ID)
			pet.Status = animalstore.PetPending
		}
		for _, texts := range [][2]string{{"A-17", "left ear \\ 'torn'\n"}, {longReference, longNote}, {"", longNote}, {"%", ""}, {"", ""}} {
			order.Reference, order.Note = animalstore.OptionalText(texts[0]), animalstore.OptionalText(texts[1])
			log := eventLog{d, mustPublish(t, d)}
			got, err := d.UpdateOrder(t.Context(), order.ID, func(o *animalstore.Order) error { *o = order; return nil })
			if err != nil || got != order {
				t.Errorf("UpdateOrder: got %+v, %v, want %+v", got, err, order)
			}
			wantOrder(t, d, order)
			wantPet(t, d, pet)
			log.want(t, "UpdateOrder", []string{fmt.Sprintf("order.updated order/%d", order.ID)}, order)
		}
	}
	texts := animalstore.NewOrder{PetID: mustCreatePet(t, d, rex).ID, Reference: "A-17", Note: "gift"}
	order, _, err := d.PlaceOrder(t.Context(), texts, noon, nil)
	if err != nil || order.Reference != "A-17" || order.Note != "gift" {
		t.Errorf("PlaceOrder(%+v): got %+v, %v", texts, order, err)
	}
	wantOrder(t, d, order)
}
