package animalstore

import (
	"encoding/json"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Environment is the deployment a key belongs to. A key of one is worthless in
// the other.
type Environment string

const (
	Production Environment = "production"
	Staging    Environment = "staging"
)

// ParseEnvironment reads "production" or "staging".
func ParseEnvironment(s string) (Environment, error) {
	switch e := Environment(s); e {
	case Production, Staging:
		return e, nil
	}
	return "", Errorf(ValidationFailed, "environment must be production or staging, not %q", s)
}

// Permissions are what a key may do, as a set.
type Permissions uint8

const (
	Read  Permissions = 1 << iota // GET and HEAD
	Write                         // every change in the store
	Admin                         // managing keys
)

var permissionNames = []struct {
	p    Permissions
	name string
}{{Read, "read"}, {Write, "write"}, {Admin, "admin"}}

// ParsePermissions reads a comma-separated list of read, write and admin.
func ParsePermissions(s string) (Permissions, error) {
	var set Permissions
	for part := range strings.SplitSeq(s, ",") {
		p, ok := ParsePermission(strings.TrimSpace(part))
		if !ok {
			return 0, Errorf(ValidationFailed, "permissions must be a comma-separated list of read, write and admin, not %q", s)
		}
		set |= p
	}
	return set, nil
}

// ParsePermission reads read, write or admin.
func ParsePermission(s string) (Permissions, bool) {
	for _, n := range permissionNames {
		if s == n.name {
			return n.p, true
		}
	}
	return 0, false
}

// Has reports whether every permission in need is in the set.
func (p Permissions) Has(need Permissions) bool { return p&need == need }

// Names are the permissions in the set, in a fixed order.
func (p Permissions) Names() []string {
	names := []string{}
	for _, n := range permissionNames {
		if p.Has(n.p) {
			names = append(names, n.name)
		}
	}
	return names
}

func (p Permissions) String() string { return strings.Join(p.Names(), ",") }

// MarshalJSON writes the set as an array of names.
func (p Permissions) MarshalJSON() ([]byte, error) { return json.Marshal(p.Names()) }

// NewKey is what an operator says of a key to make it. The secret is not part
// of it: whoever mints it keeps it, and the store sees only its hash.
type NewKey struct {
	Name        string
	Plan        Plan
	Limits      Limits // both set on enterprise, neither on other plans
	Permissions Permissions
	Environment Environment
	ExpiresAt   Time // zero: never
}

// MaxKeyNameLength is the longest name of a key, in code points.
const MaxKeyNameLength = 100

// Validate refuses a key that could not work, and settles its limits.
func (k *NewKey) Validate() error {
	if err := validateKey(k.Name, k.Permissions); err != nil {
		return err
	}
	if _, err := ParseEnvironment(string(k.Environment)); err != nil {
		return err
	}
	limits, err := k.Plan.LimitsFor(k.Limits)
	if err != nil {
		return err
	}
	k.Limits = limits
	return nil
}

func validateKey(name string, permissions Permissions) error {
	switch {
	case strings.TrimSpace(name) == "":
		return Errorf(ValidationFailed, "name must not be empty: say whose key it is")
	case utf8.RuneCountInString(name) > MaxKeyNameLength:
		return Errorf(ValidationFailed, "name must have at most %d characters", MaxKeyNameLength)
	case !utf8.ValidString(name) || strings.IndexFunc(name, unicode.IsControl) >= 0:
		return Errorf(ValidationFailed, "name must be plain text, without control characters")
	case permissions == 0:
		return Errorf(ValidationFailed, "permissions must name at least one of read, write and admin")
	}
	return nil
}

// Key is an API key as the store knows it: everything but the secret.
type Key struct {
	ID          int64       `json:"id"`
	Name        string      `json:"name"`
	Plan        Plan        `json:"plan"`
	Limits      Limits      `json:"limits"`
	Permissions Permissions `json:"permissions"`
	Environment Environment `json:"environment"`
	CreatedAt   Time        `json:"createdAt"`
	ExpiresAt   Time        `json:"expiresAt"`  // zero: never
	LastUsedAt  Time        `json:"lastUsedAt"` // to the second or so; zero: never
	RevokedAt   Time        `json:"revokedAt"`  // zero: not revoked

	// SecretExpiresAt is when the secret the key was found by stops working,
	// because the key was rotated. Zero: not by itself.
	SecretExpiresAt Time `json:"-"`
	// UnbannedAt lifts the bans that began before it.
	UnbannedAt Time `json:"-"`
}

// Validate refuses a key that could not work. Its limits are what they are.
func (k *Key) Validate() error { return validateKey(k.Name, k.Permissions) }

// Live reports whether the key opens anything at now.
func (k *Key) Live(now time.Time) bool {
	return k.RevokedAt.IsZero() && !over(k.ExpiresAt, now) && !over(k.SecretExpiresAt, now)
}

func over(end Time, now time.Time) bool { return !end.IsZero() && !now.Before(end.Time) }

// SetPlan puts the key on a plan. See [Plan.LimitsFor] for custom.
func (k *Key) SetPlan(p Plan, custom Limits) error {
	limits, err := p.LimitsFor(custom)
	if err != nil {
		return err
	}
	k.Plan, k.Limits = p, limits
	return nil
}

// Revoke withdraws the key for good. It keeps the time it was first revoked.
func (k *Key) Revoke(at Time) {
	if k.RevokedAt.IsZero() {
		k.RevokedAt = at
	}
}

// CheckChangeable refuses to change a key that is revoked: it stays as it was.
func (k *Key) CheckChangeable() error {
	if k.RevokedAt.IsZero() {
		return nil
	}
	return Errorf(InvalidTransition, "key %d was revoked and stays so: make a new one", k.ID)
}

// Manages reports whether the key can manage keys at now.
func (k *Key) Manages(now time.Time) bool { return k.Live(now) && k.Permissions.Has(Admin) }

// Usage is what became of a key's requests in one hour.
type Usage struct {
	KeyID    int64 `json:"-"`
	Hour     Time  `json:"hour"` // its beginning
	Admitted int64 `json:"admitted"`
	Refused  int64 `json:"refused"`
	LastUsed Time  `json:"-"`
}

// UsageKept is how long usage is kept.
const UsageKept = 90 * 24 * time.Hour
