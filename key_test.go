package animalstore

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParsePermissions(t *testing.T) {
	tests := []struct {
		in   string
		want Permissions // 0: refused
		text string
	}{
		{"admin,write,read", Read | Write | Admin, "read,write,admin"},
		{" read , write ", Read | Write, "read,write"},
		{"read,read", Read, "read"},
		{"", 0, ""}, {",", 0, ""}, {"read,", 0, ""}, {",read", 0, ""}, {"read,,write", 0, ""},
		{"Read", 0, ""}, {"READ", 0, ""}, {"reads", 0, ""}, {"read write", 0, ""}, {"read;write", 0, ""}, {"all", 0, ""}, {"*", 0, ""}, {"1", 0, ""},
	}
	for _, test := range tests {
		t.Run(test.in, func(t *testing.T) {
			got, err := ParsePermissions(test.in)
			if test.want == 0 {
				if code(err) != ValidationFailed || got != 0 {
					t.Errorf("got %v, %v, want it refused", got, err)
				}
				return
			}
			if err != nil || got != test.want || got.String() != test.text {
				t.Errorf("got %v, %v, want %s", got, err, test.text)
			}
		})
	}
}

func TestParseEnvironment(t *testing.T) {
	for _, want := range []Environment{Production, Staging} {
		if got, err := ParseEnvironment(string(want)); got != want || err != nil {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	for _, s := range []string{"", "Production", "prod", "live", "test", " staging"} {
		if got, err := ParseEnvironment(s); got != "" || code(err) != ValidationFailed {
			t.Errorf("%q: got %q, %v, want it refused", s, got, err)
		}
	}
}

func TestLimitsFor(t *testing.T) {
	tests := []struct {
		plan   Plan
		custom Limits
		want   Limits
		code   Code // "": no error
	}{
		{PlanFree, Limits{}, Limits{60, 1_000}, ""},
		{PlanPro, Limits{}, Limits{300, 10_000}, ""},
		{PlanBusiness, Limits{}, Limits{1_000, 100_000}, ""},
		{PlanEnterprise, Limits{5, 7}, Limits{5, 7}, ""},
		{PlanEnterprise, Limits{1 << 62, 1 << 62}, Limits{1 << 62, 1 << 62}, ""},
		{PlanEnterprise, Limits{PerMinute: 5}, Limits{}, ValidationFailed},
		{PlanEnterprise, Limits{PerDay: 5}, Limits{}, ValidationFailed},
		{PlanEnterprise, Limits{-1, 5}, Limits{}, ValidationFailed},
		{PlanEnterprise, Limits{5, -1}, Limits{}, ValidationFailed},
		{PlanFree, Limits{60, 1_000}, Limits{}, ValidationFailed},
		{"", Limits{}, Limits{}, ValidationFailed},
		{"gold", Limits{5, 7}, Limits{}, ValidationFailed},
	}
	for _, test := range tests {
		got, err := test.plan.LimitsFor(test.custom)
		if got != test.want || code(err) != test.code || test.code == "" && err != nil {
			t.Errorf("%q %v: got %v, %v, want %v, %q", test.plan, test.custom, got, err, test.want, test.code)
		}
	}
}

func TestNewKeyValidate(t *testing.T) {
	good := NewKey{Name: "shop", Plan: PlanPro, Permissions: Read, Environment: Production}
	tests := []struct {
		name   string
		change func(*NewKey)
		want   Code // "": no error
	}{
		{"good", func(*NewKey) {}, ""},
		{"100 characters", func(k *NewKey) { k.Name = strings.Repeat("ä", 100) }, ""},
		{"101 characters", func(k *NewKey) { k.Name = strings.Repeat("ä", 101) }, ValidationFailed},
		{"no name", func(k *NewKey) { k.Name = "" }, ValidationFailed},
		{"a blank name", func(k *NewKey) { k.Name = " \t" }, ValidationFailed},
		{"an escape in the name", func(k *NewKey) { k.Name = "a\x1b[31m" }, ValidationFailed},
		{"a name that is not UTF-8", func(k *NewKey) { k.Name = "\xff" }, ValidationFailed},
		{"no permission", func(k *NewKey) { k.Permissions = 0 }, ValidationFailed},
		{"enterprise without limits", func(k *NewKey) { k.Plan = PlanEnterprise }, ValidationFailed},
		{"enterprise", func(k *NewKey) { k.Plan, k.Limits = PlanEnterprise, Limits{1, 1} }, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			k := good
			test.change(&k)
			wantCode(t, k.Validate(), test.want)
			if test.want == "" && (k.Limits.PerMinute == 0 || k.Limits.PerDay == 0) {
				t.Errorf("got limits %v, want those of the plan", k.Limits)
			}
		})
	}
}

func TestKeyLive(t *testing.T) {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	tests := []struct {
		name string
		key  Key
		want bool
	}{
		{"no expiry", Key{}, true},
		{"expires later", Key{ExpiresAt: At(now.Add(time.Millisecond))}, true},
		{"expires now", Key{ExpiresAt: At(now)}, false},
		{"revoked", Key{RevokedAt: At(now)}, false},
		{"a secret that expires later", Key{SecretExpiresAt: At(now.Add(time.Millisecond))}, true},
		{"a secret that expires now", Key{SecretExpiresAt: At(now)}, false},
		{"an expired secret of a key that expires later", Key{ExpiresAt: At(now.Add(time.Hour)), SecretExpiresAt: At(now.Add(-time.Hour))}, false},
	}
	for _, test := range tests {
		if got := test.key.Live(now); got != test.want {
			t.Errorf("%s: got %t, want %t", test.name, got, test.want)
		}
		for p := Permissions(0); p <= Read|Write|Admin; p++ {
			test.key.Permissions = p
			if got, want := test.key.Manages(now), test.want && p.Has(Admin); got != want {
				t.Errorf("%s, with %q: got Manages %t, want %t", test.name, p, got, want)
			}
		}
	}
}

// TestRevoke: a key is revoked permanently, from the first time.
func TestRevoke(t *testing.T) {
	var k Key
	k.Revoke(AtMilli(5))
	k.Revoke(AtMilli(9))
	if k.RevokedAt != AtMilli(5) {
		t.Errorf("got revoked at %v, want %v", k.RevokedAt, AtMilli(5))
	}
}

func TestNewNetworks(t *testing.T) {
	for _, test := range []struct {
		in   []string
		want string
	}{
		{nil, ``},
		{[]string{"203.0.113.0/24", "2001:DB8:0::/32"}, "203.0.113.0/24,2001:db8::/32"},
		{[]string{"203.0.113.7", "2001:db8::1"}, "203.0.113.7/32,2001:db8::1/128"},
		{[]string{"::ffff:203.0.113.7", "::ffff:203.0.113.0/120", "::ffff:0:0/96"}, "203.0.113.7/32,203.0.113.0/24,0.0.0.0/0"},
		{[]string{"0.0.0.0/0", "::/0", "0.0.0.0/0"}, "0.0.0.0/0,::/0"},
	} {
		got, err := NewNetworks(test.in)
		if err != nil || string(got) != test.want {
			t.Errorf("%q: got %q, %v, want %q", test.in, got, err, test.want)
		}
		var again Networks
		if text, err := json.Marshal(got); err != nil || json.Unmarshal(text, &again) != nil || again != got {
			t.Errorf("%q: got %q back from %s (%v)", test.in, again, text, err)
		}
	}
	for _, bad := range []string{"", " ", "x", "203.0.113.0/24 ", "203.0.113.1/24", "203.0.113.0/33", "203.0.113.0/", "203.0.113", "2001:db8::1/32", "fe80::1%eth0", "fe80::%eth0/64", "::ffff:203.0.113.7/120", "::ffff:203.0.113.0/90", "203.0.113.0/24,192.0.2.0/24"} {
		if got, err := NewNetworks([]string{"192.0.2.0/24", bad}); code(err) != ValidationFailed {
			t.Errorf("%q: got %q, %v, want it refused", bad, got, err)
		}
	}
}

// TestNetworksHaveALimit: 20 networks, counted before duplicates are dropped.
func TestNetworksHaveALimit(t *testing.T) {
	var list []string
	for i := range MaxNetworks {
		list = append(list, fmt.Sprintf("192.0.2.%d", i))
	}
	if got, err := NewNetworks(list); err != nil || len(got.List()) != MaxNetworks {
		t.Errorf("got %q, %v, want %d networks", got, err, MaxNetworks)
	}
	if _, err := NewNetworks(slices.Repeat([]string{"192.0.2.1"}, MaxNetworks+1)); code(err) != ValidationFailed {
		t.Errorf("got %v, want it refused", err)
	}
}

// TestNetworksFailClosed: networks that can't be read allow no address.
func TestNetworksFailClosed(t *testing.T) {
	for _, n := range []Networks{"x", ",", "203.0.113.7"} {
		if n.Allow(netip.MustParseAddr("203.0.113.7")) {
			t.Errorf("%q: got an address allowed", n)
		}
	}
}

// TestPermissionsAllow: what each permission includes, in every combination with others.
func TestPermissionsAllow(t *testing.T) {
	allows := map[Permissions]Permissions{
		Read:        Read | PetsRead | OrdersRead,
		Write:       Write | PetsWrite | OrdersWrite,
		Admin:       Admin,
		PetsRead:    PetsRead,
		PetsWrite:   PetsWrite | PetsRead,
		OrdersRead:  OrdersRead,
		OrdersWrite: OrdersWrite | OrdersRead,
	}
	for set := range AllPermissions + 1 {
		var want Permissions
		for one, includes := range allows {
			if set.Has(one) {
				want |= includes
			}
		}
		if !set.Allows(0) {
			t.Errorf("%q: got nothing allowed, want what needs no permission", set)
		}
		for need := Permissions(1); need <= AllPermissions; need++ {
			if got, want := set.Allows(need), want&need != 0; got != want {
				t.Errorf("%q: got one of %q allowed: %t, want %t", set, need, got, want)
			}
		}
	}
}

// TestPermissionNames: every permission has its own name, which reads back.
func TestPermissionNames(t *testing.T) {
	if got, want := AllPermissions.String(), "read,write,admin,pets:read,pets:write,orders:read,orders:write"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for set := Permissions(1); set <= AllPermissions; set++ {
		if got, err := ParsePermissions(set.String()); err != nil || got != set {
			t.Errorf("%s: got %s, %v", set, got, err)
		}
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
