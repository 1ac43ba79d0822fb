package animalstore

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestPetPatch(t *testing.T) {
	rex := Pet{ID: 17, Name: "Rex", CategoryID: 7, Status: PetAvailable}
	for _, test := range []struct {
		name    string
		patch   PetPatch
		ordered bool
		want    Pet
		code    Code
	}{
		{"nothing", PetPatch{}, false, rex, ""},
		{"the name", PetPatch{Name: new("Max")}, true, Pet{17, "Max", 7, PetAvailable}, ""},
		{"category 0", PetPatch{CategoryID: new(int64(0))}, false, Pet{17, "Rex", 0, PetAvailable}, ""},
		{"everything", PetPatch{new("Max"), new(int64(-1)), new(PetSold)}, false, Pet{17, "Max", -1, PetSold}, ""},
		{"the current status", PetPatch{Status: new(PetAvailable)}, true, rex, ""},
		{"an empty name", PetPatch{Name: new("")}, false, rex, ValidationFailed},
		{"an empty status", PetPatch{Status: new(PetStatus(""))}, false, rex, ValidationFailed},
		{"a valid name with an unknown status", PetPatch{Name: new("Max"), Status: new(PetStatus("lost"))}, false, rex, ValidationFailed},
		{"a valid name with a status that is not allowed", PetPatch{Name: new("Max"), Status: new(PetSold)}, true, rex, InvalidTransition},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := rex
			err := test.patch.Apply(&got, test.ordered)
			wantCode(t, err, test.code)
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			if err := test.patch.Validate(); (err != nil) != (test.code == ValidationFailed) {
				t.Errorf("Validate: got %v, with %q from Apply", err, test.code)
			}
		})
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

func TestKeyPatch(t *testing.T) {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	later := At(now.Add(time.Hour))
	pro := Key{ID: 3, Name: "shop", Plan: PlanPro, Limits: Limits{300, 10_000}, Permissions: Read, ExpiresAt: later}
	enterprise := pro
	enterprise.Plan, enterprise.Limits = PlanEnterprise, Limits{5, 7}
	revoked := pro
	revoked.RevokedAt = At(now)
	with := func(k Key, change func(*Key)) Key { change(&k); return k }
	for _, test := range []struct {
		name  string
		key   Key
		patch KeyPatch
		want  Key
		code  Code
	}{
		{"nothing", pro, KeyPatch{}, pro, ""},
		{"name and permissions", pro, KeyPatch{Name: new("till"), Permissions: new(Admin)}, with(pro, func(k *Key) { k.Name, k.Permissions = "till", Admin }), ""},
		{"no expiry", pro, KeyPatch{ExpiresAt: new(Time{})}, with(pro, func(k *Key) { k.ExpiresAt = Time{} }), ""},
		{"a plan", enterprise, KeyPatch{Plan: new(PlanFree)}, with(pro, func(k *Key) { k.Plan, k.Limits = PlanFree, Limits{60, 1_000} }), ""},
		{"enterprise with limits", pro, KeyPatch{Plan: new(PlanEnterprise), Limits: &Limits{5, 7}}, enterprise, ""},
		{"enterprise again", enterprise, KeyPatch{Plan: new(PlanEnterprise)}, enterprise, ""},
		{"other limits", enterprise, KeyPatch{Limits: &Limits{8, 9}}, with(enterprise, func(k *Key) { k.Limits = Limits{8, 9} }), ""},
		{"networks, as they are stored", pro, KeyPatch{Networks: new(Networks("203.0.113.7,::/0"))}, with(pro, func(k *Key) { k.Networks = "203.0.113.7/32,::/0" }), ""},
		{"no networks", with(pro, func(k *Key) { k.Networks = "::/0" }), KeyPatch{Networks: new(Networks(""))}, pro, ""},
		{"a suspension", pro, KeyPatch{Suspended: new(true)}, with(pro, func(k *Key) { k.SuspendedAt = At(now) }), ""},
		{"a second suspension", with(pro, func(k *Key) { k.SuspendedAt = later }), KeyPatch{Suspended: new(true)}, with(pro, func(k *Key) { k.SuspendedAt = later }), ""},
		{"the end of a suspension", with(pro, func(k *Key) { k.SuspendedAt = later }), KeyPatch{Suspended: new(false)}, pro, ""},
		{"networks with host bits", pro, KeyPatch{Networks: new(Networks("203.0.113.7/24"))}, pro, ValidationFailed},
		{"the suspension of a revoked key", revoked, KeyPatch{Suspended: new(true)}, revoked, InvalidTransition},
		{"an empty name", pro, KeyPatch{Name: new(" ")}, pro, ValidationFailed},
		{"no permission", pro, KeyPatch{Permissions: new(Permissions(0))}, pro, ValidationFailed},
		{"a past expiry", pro, KeyPatch{Name: new("till"), ExpiresAt: new(At(now))}, pro, ValidationFailed},
		{"an unknown plan", pro, KeyPatch{Plan: new(Plan("gold"))}, pro, ValidationFailed},
		{"limits for a plan that has its own", enterprise, KeyPatch{Plan: new(PlanFree), Limits: &Limits{5, 7}}, enterprise, ValidationFailed},
		{"a revoked key", revoked, KeyPatch{Name: new("till")}, revoked, InvalidTransition},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := test.key
			wantCode(t, test.patch.Apply(&got, now), test.code)
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			if err := test.patch.Validate(now); (err != nil) != (test.code == ValidationFailed) {
				t.Errorf("Validate: got %v, with %q from Apply", err, test.code)
			}
		})
	}
	// These depend on the plan that the key is on.
	for name, patch := range map[string]KeyPatch{
		"enterprise without limits": {Name: new("till"), Plan: new(PlanEnterprise)},
		"limits on pro":             {Name: new("till"), Limits: &Limits{5, 7}},
	} {
		got := pro
		wantCode(t, patch.Validate(now), "")
		if err := patch.Apply(&got, now); code(err) != ValidationFailed || got != pro {
			t.Errorf("%s: got %v and %+v, want it refused", name, err, got)
		}
	}
}

// TestPatchJSON: a patch has the fields that are set. A key's expiry that is never
// is null.
func TestPatchJSON(t *testing.T) {
	for _, test := range []struct {
		patch any
		want  string
	}{
		{PetPatch{}, `{}`},
		{PetPatch{Name: new(""), CategoryID: new(int64(0))}, `{"name":"","categoryId":0}`},
		{OrderPatch{Status: new(OrderApproved)}, `{"status":"approved"}`},
		{OrderPatch{Reference: new(OptionalText("")), Note: new(OptionalText("x"))}, `{"reference":null,"note":"x"}`},
		{NewOrder{PetID: 3}, `{"petId":3}`},
		{NewOrder{PetID: 3, Reference: "a", Note: "b"}, `{"petId":3,"reference":"a","note":"b"}`},
		{KeyPatch{Permissions: new(Read | Write), ExpiresAt: new(Time{})}, `{"permissions":["read","write"],"expiresAt":null}`},
	} {
		if got, err := json.Marshal(test.patch); err != nil || string(got) != test.want {
			t.Errorf("%+v: got %s, %v, want %s", test.patch, got, err, test.want)
		}
	}
}
