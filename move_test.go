package animalstore

import (
	"testing"
	"time"
)

// TestPetMoves tries every change of status, with and without an open order.
func TestPetMoves(t *testing.T) {
	allowed := map[[2]PetStatus]bool{
		{PetAvailable, PetPending}: true, {PetPending, PetAvailable}: true,
		{PetAvailable, PetSold}: true, {PetPending, PetSold}: true,
	}
	for _, from := range PetStatuses {
		for _, to := range PetStatuses {
			for _, ordered := range []bool{false, true} {
				p := Pet{ID: 7, Status: from}
				err := p.SetStatus(to, ordered)
				want := from == to || allowed[[2]PetStatus{from, to}] && !ordered
				switch {
				case want && (err != nil || p.Status != to):
					t.Errorf("%s to %s, ordered %t: got %s, %v, want it moved", from, to, ordered, p.Status, err)
				case !want && (code(err) != InvalidTransition || p.Status != from):
					t.Errorf("%s to %s, ordered %t: got %s, %v, want it refused", from, to, ordered, p.Status, err)
				}
			}
		}
	}
}

func TestPetChecks(t *testing.T) {
	for _, status := range PetStatuses {
		p := Pet{ID: 7, Status: status}
		if err := p.CheckOrderable(); (err == nil) != (status == PetAvailable) || err != nil && code(err) != PetNotAvailable {
			t.Errorf("order of a pet that is %s: got %v", status, err)
		}
		for _, ordered := range []bool{false, true} {
			if err := p.CheckRemovable(ordered); (err == nil) == ordered || err != nil && code(err) != InvalidTransition {
				t.Errorf("removal of a pet that is %s, ordered %t: got %v", status, ordered, err)
			}
		}
	}
}

// TestOrderMoves tries every change of an order's status, and checks what it means
// for its pet.
func TestOrderMoves(t *testing.T) {
	allowed := map[[2]OrderStatus]bool{
		{OrderPlaced, OrderApproved}: true, {OrderApproved, OrderDelivered}: true,
		{OrderPlaced, OrderCancelled}: true, {OrderApproved, OrderCancelled}: true,
	}
	made, now := AtMilli(1), At(time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC))
	for _, from := range OrderStatuses {
		for _, to := range OrderStatuses {
			o := Order{ID: 9, PetID: 7, Status: from, CreatedAt: made, UpdatedAt: made}
			want, err := o, o.Move(to, now)
			if allowed[[2]OrderStatus{from, to}] {
				want.Status, want.UpdatedAt = to, now
				if err != nil {
					t.Errorf("%s to %s: got %v, want it moved", from, to, err)
				}
			} else if code(err) != InvalidTransition {
				t.Errorf("%s to %s: got %v, want it refused", from, to, err)
			}
			if o != want {
				t.Errorf("%s to %s: got %+v, want %+v", from, to, o, want)
			}
		}
	}
	for status, want := range map[OrderStatus]struct {
		open bool
		pet  PetStatus
	}{
		OrderPlaced: {true, PetPending}, OrderApproved: {true, PetPending}, OrderDelivered: {false, PetSold}, OrderCancelled: {false, PetAvailable},
	} {
		if status.Open() != want.open || status.PetStatus() != want.pet {
			t.Errorf("%s: got open %t and the pet %s, want %t and %s", status, status.Open(), status.PetStatus(), want.open, want.pet)
		}
	}
}
