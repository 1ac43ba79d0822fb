package animalstore

import (
	"encoding/json"
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
	placed := Order{ID: 9, PetID: 17, Status: OrderPlaced, CreatedAt: AtMilli(1), UpdatedAt: AtMilli(1)}
	for _, test := range []struct {
		name  string
		patch OrderPatch
		code  Code
	}{
		{"nothing", OrderPatch{}, ValidationFailed},
		{"an empty status", OrderPatch{new(OrderStatus(""))}, ValidationFailed},
		{"a status of pets", OrderPatch{new(OrderStatus("sold"))}, ValidationFailed},
		{"a step too far", OrderPatch{new(OrderDelivered)}, InvalidTransition},
		{"a step", OrderPatch{new(OrderApproved)}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, want := placed, placed
			wantCode(t, test.patch.Apply(&got, AtMilli(5)), test.code)
			if test.code == "" {
				want.Status, want.UpdatedAt = *test.patch.Status, AtMilli(5)
			}
			if got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
			if err := test.patch.Validate(); (err != nil) != (test.code == ValidationFailed) {
				t.Errorf("Validate: got %v, with %q from Apply", err, test.code)
			}
		})
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
		{OrderPatch{new(OrderApproved)}, `{"status":"approved"}`},
		{KeyPatch{Permissions: new(Read | Write), ExpiresAt: new(Time{})}, `{"permissions":["read","write"],"expiresAt":null}`},
	} {
		if got, err := json.Marshal(test.patch); err != nil || string(got) != test.want {
			t.Errorf("%+v: got %s, %v, want %s", test.patch, got, err, test.want)
		}
	}
}
