package api_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"animalstore"
)

// TestOrderMoves goes through all moves of an order and what each makes of the
// pet.
func TestOrderMoves(t *testing.T) {
	s := start(t)
	allowed := map[[2]animalstore.OrderStatus]bool{
		{"placed", "approved"}: true, {"placed", "cancelled"}: true,
		{"approved", "delivered"}: true, {"approved", "cancelled"}: true,
	}
	gives := map[animalstore.OrderStatus]animalstore.PetStatus{"placed": "pending", "approved": "pending", "delivered": "sold", "cancelled": "available"}
	for _, from := range animalstore.OrderStatuses {
		for _, to := range animalstore.OrderStatuses {
			t.Run(fmt.Sprintf("%s to %s", from, to), func(t *testing.T) {
				pet := s.addOne(t, "available")
				want := s.order(t, pet.ID, stepsTo[from]...)
				if want.Status != from || s.pet(t, pet.ID).Status != gives[from] {
					t.Fatalf("got order %+v and pet %+v, want %s and %s", want, s.pet(t, pet.ID), from, gives[from])
				}
				s.clock.advance(time.Second)
				got := s.do(t, patch(orderPath(want.ID), fmt.Sprintf(`{"status":%q}`, to)))
				if allowed[[2]animalstore.OrderStatus{from, to}] {
					want.Status, want.UpdatedAt = to, animalstore.At(s.clock.Now())
					if moved := read[animalstore.Order](t, got, 200); moved != want {
						t.Errorf("got %+v, want %+v", moved, want)
					}
				} else {
					got.want(t, 409, animalstore.InvalidTransition)
					got.wantMessage(t, fmt.Sprint("order ", want.ID), string(from))
				}
				if stored := read[animalstore.Order](t, s.do(t, call{path: orderPath(want.ID)}), 200); stored != want {
					t.Errorf("stored is %+v, want %+v", stored, want)
				}
				if status := s.pet(t, pet.ID).Status; status != gives[want.Status] {
					t.Errorf("the pet is %s, want %s", status, gives[want.Status])
				}
			})
		}
	}
}

func TestPlaceOrder(t *testing.T) {
	s := start(t)
	t.Run("available", func(t *testing.T) {
		pet := s.addOne(t, "available")
		got := s.do(t, post("/v1/store/orders", fmt.Sprintf(`{"petId":%d,"id":99,"status":"delivered","quantity":1}`, pet.ID)))
		now := animalstore.At(s.clock.Now())
		order := read[animalstore.Order](t, got, 201)
		want := animalstore.Order{ID: order.ID, PetID: pet.ID, Status: "placed", CreatedAt: now, UpdatedAt: now}
		if order != want || got.header.Get("Location") != orderPath(order.ID) {
			t.Errorf("got %+v at %s, want %+v", order, got.header.Get("Location"), want)
		}
		if want := fmt.Sprintf(`{"id":%d,"petId":%d,"status":"placed","createdAt":"2026-11-15T12:00:00.000Z","updatedAt":"2026-11-15T12:00:00.000Z"}`+"\n", order.ID, pet.ID); string(got.body) != want {
			t.Errorf("got  %swant %s", got.body, want)
		}
		again := s.do(t, call{path: orderPath(order.ID)})
		if string(again.body) != string(got.body) || again.header.Get("ETag") != got.header.Get("ETag") {
			t.Errorf("read %v with ETag %s, want %v with %s", again, again.header.Get("ETag"), got, got.header.Get("ETag"))
		}
	})
	for _, status := range []animalstore.PetStatus{"pending", "sold"} {
		t.Run(string(status), func(t *testing.T) {
			got := s.do(t, post("/v1/store/orders", fmt.Sprintf(`{"petId":%d}`, s.addOne(t, status).ID)))
			got.want(t, 409, animalstore.PetNotAvailable)
			got.wantMessage(t, "is "+string(status), "only an available one")
		})
	}
	for _, id := range []string{"999999", "0", "-1", "9223372036854775807", "-9223372036854775808"} {
		t.Run("no pet "+id, func(t *testing.T) {
			got := s.do(t, bad(post("/v1/store/orders", `{"petId":`+id+`}`)))
			got.want(t, 404, animalstore.PetNotFound)
			got.wantMessage(t, id)
		})
	}
	t.Run("once more after it was cancelled", func(t *testing.T) {
		pet := s.addOne(t, "available")
		first := s.order(t, pet.ID, "cancelled")
		if second := s.order(t, pet.ID); second.ID <= first.ID {
			t.Errorf("got order %d after %d", second.ID, first.ID)
		}
	})
}

func TestOrderOutlivesItsPet(t *testing.T) {
	s := start(t)
	for _, status := range []animalstore.OrderStatus{"delivered", "cancelled"} {
		pet := s.addOne(t, "available")
		order := s.order(t, pet.ID, stepsTo[status]...)
		s.do(t, remove(petPath(pet.ID))).want(t, 204, "")
		if got := read[animalstore.Order](t, s.do(t, call{path: orderPath(order.ID)}), 200); got != order {
			t.Errorf("got %+v, want %+v", got, order)
		}
		list := read[[]animalstore.Order](t, s.do(t, call{path: fmt.Sprint("/v1/store/orders?petId=", pet.ID)}), 200)
		if !slices.Equal(list, []animalstore.Order{order}) {
			t.Errorf("got %+v, want %+v alone", list, order)
		}
	}
}

func TestOrderLists(t *testing.T) {
	s := start(t)
	var all []animalstore.Order // newest first
	pets := []animalstore.Pet{s.addOne(t, ""), s.addOne(t, "")}
	for i := range 9 {
		all = slices.Insert(all, 0, s.order(t, pets[i%2].ID, "cancelled"))
	}
	for _, status := range []animalstore.OrderStatus{"placed", "approved", "delivered"} {
		all = slices.Insert(all, 0, s.order(t, s.addOne(t, "").ID, stepsTo[status]...))
	}
	for _, status := range append([]animalstore.OrderStatus{""}, animalstore.OrderStatuses...) {
		for _, pet := range []int64{0, pets[0].ID, pets[1].ID, 1 << 40} {
			for _, limit := range []int{0, 1, 4, 100} {
				path, sep := "/v1/store/orders", "?"
				add := func(name string, value any) { path += fmt.Sprint(sep, name, "=", value); sep = "&" }
				if status != "" {
					add("status", status)
				}
				if pet != 0 {
					add("petId", pet)
				}
				if limit != 0 {
					add("limit", limit)
				}
				want := slices.DeleteFunc(slices.Clone(all), func(o animalstore.Order) bool {
					return status != "" && o.Status != status || pet != 0 && o.PetID != pet
				})
				var got []animalstore.Order
				for next := path; next != ""; {
					a := s.do(t, call{path: next})
					page := read[[]animalstore.Order](t, a, 200)
					if limit > 0 && len(page) > limit {
						t.Errorf("%s: got a page of %d", next, len(page))
					}
					got = append(got, page...)
					_, next = a.links(t)
				}
				if !slices.Equal(got, want) {
					t.Errorf("%s: got %+v, want %+v", path, got, want)
				}
			}
		}
	}
}
