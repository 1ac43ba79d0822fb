package animalstore

import (
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
