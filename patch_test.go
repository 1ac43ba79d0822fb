package animalstore

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// wantMessage checks for an error with a code and a text in its message; "" is for
// no error.
func wantMessage(t *testing.T, err error, want Code, message string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("got %v, want no error", err)
	case code(err) != want || err != nil && !strings.Contains(err.Error(), message):
		t.Errorf("got %v, want %s with %q", err, want, message)
	}
}

func TestPetPatch(t *testing.T) {
	rex := Pet{ID: 17, Name: "Rex", CategoryID: 7, Status: PetAvailable}
	for _, test := range []struct {
		name    string
		patch   PetPatch
		ordered bool
		want    Pet
		code    Code
		message string
	}{
		{"nothing", PetPatch{}, false, rex, "", ""},
		{"the name", PetPatch{Name: new("Max")}, true, Pet{17, "Max", 7, PetAvailable}, "", ""},
		{"category 0", PetPatch{CategoryID: new(int64(0))}, false, Pet{17, "Rex", 0, PetAvailable}, "", ""},
		{"everything", PetPatch{new("Max"), new(int64(-1)), new(PetSold)}, false, Pet{17, "Max", -1, PetSold}, "", ""},
		{"the current status", PetPatch{Status: new(PetAvailable)}, true, rex, "", ""},
		{"an empty name", PetPatch{Name: new("")}, false, rex, ValidationFailed, "name must not be empty"},
		{"an empty status", PetPatch{Status: new(PetStatus(""))}, false, rex, ValidationFailed, "status must be one of available, pending, sold"},
		{"a valid name with an unknown status", PetPatch{Name: new("Max"), Status: new(PetStatus("lost"))}, false, rex, ValidationFailed, "status must be one of"},
		{"a valid name with a status that is not allowed", PetPatch{Name: new("Max"), Status: new(PetSold)}, true, rex, InvalidTransition, "open order"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := rex
			err := test.patch.Apply(&got, test.ordered)
			wantMessage(t, err, test.code, test.message)
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
		name    string
		patch   OrderPatch
		code    Code
		message string
	}{
		{"nothing", OrderPatch{}, ValidationFailed, "status is required"},
		{"an empty status", OrderPatch{new(OrderStatus(""))}, ValidationFailed, "status must be one of placed, approved, delivered, cancelled"},
		{"a status of pets", OrderPatch{new(OrderStatus("sold"))}, ValidationFailed, "status must be one of"},
		{"a step too far", OrderPatch{new(OrderDelivered)}, InvalidTransition, "order 9 cannot become delivered: it is placed and can become approved or cancelled"},
		{"a step", OrderPatch{new(OrderApproved)}, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, want := placed, placed
			wantMessage(t, test.patch.Apply(&got, AtMilli(5)), test.code, test.message)
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
		name    string
		key     Key
		patch   KeyPatch
		want    Key
		code    Code
		message string
	}{
		{"nothing", pro, KeyPatch{}, pro, "", ""},
		{"name and permissions", pro, KeyPatch{Name: new("till"), Permissions: new(Admin)}, with(pro, func(k *Key) { k.Name, k.Permissions = "till", Admin }), "", ""},
		{"no expiry", pro, KeyPatch{ExpiresAt: new(Time{})}, with(pro, func(k *Key) { k.ExpiresAt = Time{} }), "", ""},
		{"a plan", enterprise, KeyPatch{Plan: new(PlanFree)}, with(pro, func(k *Key) { k.Plan, k.Limits = PlanFree, Limits{60, 1_000} }), "", ""},
		{"enterprise with limits", pro, KeyPatch{Plan: new(PlanEnterprise), Limits: &Limits{5, 7}}, enterprise, "", ""},
		{"enterprise again", enterprise, KeyPatch{Plan: new(PlanEnterprise)}, enterprise, "", ""},
		{"other limits", enterprise, KeyPatch{Limits: &Limits{8, 9}}, with(enterprise, func(k *Key) { k.Limits = Limits{8, 9} }), "", ""},
		{"an empty name", pro, KeyPatch{Name: new(" ")}, pro, ValidationFailed, "name must not be empty"},
		{"no permission", pro, KeyPatch{Permissions: new(Permissions(0))}, pro, ValidationFailed, "permissions must name at least one"},
		{"a past expiry", pro, KeyPatch{Name: new("till"), ExpiresAt: new(At(now))}, pro, ValidationFailed, "expiresAt must be in the future"},
		{"an unknown plan", pro, KeyPatch{Plan: new(Plan("gold"))}, pro, ValidationFailed, "plan must be one of free, pro, business, enterprise"},
		{"limits for a plan that has its own", enterprise, KeyPatch{Plan: new(PlanFree), Limits: &Limits{5, 7}}, enterprise, ValidationFailed, "fixed limits"},
		{"a revoked key", revoked, KeyPatch{Name: new("till")}, revoked, InvalidTransition, "key 3 was revoked"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := test.key
			wantMessage(t, test.patch.Apply(&got, now), test.code, test.message)
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
		wantMessage(t, patch.Validate(now), "", "")
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

func TestJoinNames(t *testing.T) {
	for _, test := range []struct{ names, comma, or string }{
		{"", "", ""}, {"a", "a", "a"}, {"a b", "a, b", "a or b"}, {"a b c", "a, b, c", "a, b or c"},
	} {
		names := strings.Fields(test.names)
		if got := JoinNames(names); got != test.comma {
			t.Errorf("JoinNames(%q): got %q, want %q", names, got, test.comma)
		}
		if got := JoinOr(names); got != test.or {
			t.Errorf("JoinOr(%q): got %q, want %q", names, got, test.or)
		}
	}
}
