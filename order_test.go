package animalstore

import (
	"strings"
	"testing"
	"time"
)

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

func TestOrderPatch(t *testing.T) {
	text := func(s string) *OptionalText { return new(OptionalText(s)) }
	placed := Order{ID: 9, PetID: 17, Status: OrderPlaced, Reference: "A", CreatedAt: AtMilli(1), UpdatedAt: AtMilli(1)}
	with := func(change func(*Order)) Order { o := placed; o.UpdatedAt = AtMilli(5); change(&o); return o }
	for _, test := range []struct {
		name  string
		patch OrderPatch
		want  Order
		code  Code
	}{
		{"nothing", OrderPatch{}, placed, ValidationFailed},
		{"an empty status", OrderPatch{Status: new(OrderStatus(""))}, placed, ValidationFailed},
		{"a status of pets", OrderPatch{Status: new(OrderStatus("sold"))}, placed, ValidationFailed},
		{"a step too far", OrderPatch{Status: new(OrderDelivered), Note: text("x")}, placed, InvalidTransition},
		{"a step", OrderPatch{Status: new(OrderApproved)}, with(func(o *Order) { o.Status = OrderApproved }), ""},
		{"everything", OrderPatch{new(OrderApproved), text("B"), text("x")}, with(func(o *Order) { o.Status, o.Reference, o.Note = OrderApproved, "B", "x" }), ""},
		{"no reference", OrderPatch{Reference: text("")}, with(func(o *Order) { o.Reference = "" }), ""},
		{"the same texts", OrderPatch{Reference: text("A"), Note: text("")}, placed, ""},
		{"the longest texts", OrderPatch{Reference: text(strings.Repeat("ß", 100)), Note: text(strings.Repeat("🐶", 1000))},
			with(func(o *Order) {
				o.Reference, o.Note = OptionalText(strings.Repeat("ß", 100)), OptionalText(strings.Repeat("🐶", 1000))
			}), ""},
		{"a long reference", OrderPatch{Status: new(OrderApproved), Reference: text(strings.Repeat("x", 101))}, placed, ValidationFailed},
		{"a long note", OrderPatch{Note: text(strings.Repeat("x", 1001))}, placed, ValidationFailed},
		{"U+0000", OrderPatch{Note: text("x\x00")}, placed, ValidationFailed},
		{"not UTF-8", OrderPatch{Reference: text("\xff")}, placed, ValidationFailed},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := placed
			wantCode(t, test.patch.Apply(&got, AtMilli(5)), test.code)
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			if err := test.patch.Validate(); (err != nil) != (test.code == ValidationFailed) {
				t.Errorf("Validate: got %v, with %q from Apply", err, test.code)
			}
		})
	}
	delivered := placed
	delivered.Status = OrderDelivered
	if err := (OrderPatch{Note: text("x")}).Apply(&delivered, AtMilli(5)); err != nil || delivered.Note != "x" {
		t.Errorf("a note for a delivered order: got %+v, %v", delivered, err)
	}
	for _, in := range []NewOrder{{PetID: 1, Reference: *text(strings.Repeat("x", 101))}, {PetID: 1, Note: "\x00"}} {
		wantCode(t, in.Validate(), ValidationFailed)
	}
}
