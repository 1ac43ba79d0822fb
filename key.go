package animalstore

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Environment is the deployment that a key belongs to. A key works in no other.
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

// NewKey is a key to create. The secret isn't part of it: the store only gets
// the secret's hash.
type NewKey struct {
	Name        string
	Plan        Plan
	Limits      Limits // both set on enterprise, neither on other plans
	Permissions Permissions
	Networks    Networks // empty: from anywhere
	Environment Environment
	ExpiresAt   Time // zero: never
}

// MaxKeyNameLength is the maximum length of a key's name, in code points.
const MaxKeyNameLength = 100

// Validate checks every field, sets the limits to those of the plan, and writes the
// networks like [NewNetworks].
func (k *NewKey) Validate() error {
	if err := validateKeyName(k.Name); err != nil {
		return err
	}
	if err := validatePermissions(k.Permissions); err != nil {
		return err
	}
	networks, err := NewNetworks(k.Networks.List())
	if err != nil {
		return err
	}
	k.Networks = networks
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

func validateKeyName(name string) error {
	switch {
	case strings.TrimSpace(name) == "":
		return Errorf(ValidationFailed, "name must not be empty: say whose key it is")
	case utf8.RuneCountInString(name) > MaxKeyNameLength:
		return Errorf(ValidationFailed, "name must have at most %d characters", MaxKeyNameLength)
	case !utf8.ValidString(name) || strings.IndexFunc(name, unicode.IsControl) >= 0:
		return Errorf(ValidationFailed, "name must be plain text, without control characters")
	}
	return nil
}

// ValidateExpiry checks that a key which expires at a time, unless that is
// never, still works now.
func ValidateExpiry(expiresAt Time, now time.Time) error {
	if expired(expiresAt, now) {
		return Errorf(ValidationFailed, "expiresAt must be in the future")
	}
	return nil
}

// Key is an API key without its secret.
type Key struct {
	ID          int64       `json:"id"`
	Name        string      `json:"name"`
	Plan        Plan        `json:"plan"`
	Limits      Limits      `json:"limits"`
	Permissions Permissions `json:"permissions"`
	Networks    Networks    `json:"networks"` // empty: from anywhere
	Environment Environment `json:"environment"`
	CreatedAt   Time        `json:"createdAt"`
	ExpiresAt   Time        `json:"expiresAt"`   // zero: never
	LastUsedAt  Time        `json:"lastUsedAt"`  // accurate to about a second; zero: never
	RevokedAt   Time        `json:"revokedAt"`   // zero: not revoked
	SuspendedAt Time        `json:"suspendedAt"` // zero: not suspended
	Ban         Ban         `json:"ban"`         // may be over: see [Key.At]

	// SecretExpiresAt is when the secret that this key was found by stops
	// working because the key was rotated. Zero: it doesn't.
	SecretExpiresAt Time `json:"-"`
	// UnbannedAt lifts all bans that began until then. See [Key.Unban].
	UnbannedAt Time `json:"-"`
}

// Ban is a ban of a key that kept sending requests after it was told to wait. The
// zero Ban, null in JSON, means no ban.
type Ban struct {
	Until Time  `json:"until"`
	Level int64 `json:"level"` // number of consecutive bans; each makes the next one longer
}

// MarshalJSON writes null for no ban.
func (b Ban) MarshalJSON() ([]byte, error) {
	if b == (Ban{}) {
		return []byte("null"), nil
	}
	type fields Ban // without this method
	return json.Marshal(fields(b))
}

// At returns the key as it is at now: without a ban that is over.
func (k Key) At(now time.Time) Key {
	if expired(k.Ban.Until, now) {
		k.Ban = Ban{}
	}
	return k
}

// Live reports whether the key works at now, unless it is suspended.
func (k *Key) Live(now time.Time) bool {
	return k.RevokedAt.IsZero() && !expired(k.ExpiresAt, now) && !expired(k.SecretExpiresAt, now)
}

// State is "live", "banned", "suspended", "expired" or "revoked".
func (k *Key) State(now time.Time) string {
	switch {
	case !k.RevokedAt.IsZero():
		return "revoked"
	case !k.Live(now):
		return "expired"
	case k.Suspended():
		return "suspended"
	case k.At(now).Ban != Ban{}:
		return "banned"
	}
	return "live"
}

func expired(end Time, now time.Time) bool { return !end.IsZero() && !now.Before(end.Time) }

// SetPlan changes the plan and the limits. See [Plan.LimitsFor] for custom.
func (k *Key) SetPlan(p Plan, custom Limits) error {
	limits, err := p.LimitsFor(custom)
	if err != nil {
		return err
	}
	k.Plan, k.Limits = p, limits
	return nil
}

// Revoke disables the key permanently. RevokedAt stays the time of the first
// call.
func (k *Key) Revoke(at Time) {
	if k.RevokedAt.IsZero() {
		k.RevokedAt = at
	}
}

// Suspended reports whether the key is refused until it is resumed.
func (k *Key) Suspended() bool { return !k.SuspendedAt.IsZero() }

// Suspend makes the service refuse the key until [Key.Resume]. SuspendedAt stays the time
// of the first call.
func (k *Key) Suspend(at Time) {
	if !k.Suspended() {
		k.SuspendedAt = at
	}
}

// Resume ends a suspension.
func (k *Key) Resume() { k.SuspendedAt = Time{} }

// Unban lifts the key's bans that began at or before now, and the last one even if
// it began later, because the clock was set back in between or is another one.
func (k *Key) Unban(now, lastBan Time) {
	for _, t := range []Time{now, lastBan} {
		if t.After(k.UnbannedAt.Time) {
			k.UnbannedAt = t
		}
	}
	k.Ban = Ban{}
}

// CheckChangeable returns an error if the key is revoked.
func (k *Key) CheckChangeable() error {
	if k.RevokedAt.IsZero() {
		return nil
	}
	return Errorf(InvalidTransition, "this key was revoked permanently: create a new one")
}

// KeyPatch is a change of a key. A nil field stays as it is. A new plan comes with
// its own limits; an enterprise key keeps its limits unless the patch has others.
type KeyPatch struct {
	Name        *string      `json:"name,omitempty"`
	Plan        *Plan        `json:"plan,omitempty"`
	Limits      *Limits      `json:"limits,omitempty"`
	Permissions *Permissions `json:"permissions,omitempty"`
	Networks    *Networks    `json:"networks,omitempty"`
	ExpiresAt   *Time        `json:"expiresAt,omitempty"` // the zero time, null in JSON: never
	Suspended   *bool        `json:"suspended,omitempty"`
}

// Validate checks what doesn't depend on the key.
func (patch KeyPatch) Validate(now time.Time) error {
	if patch.Name != nil {
		if err := validateKeyName(*patch.Name); err != nil {
			return err
		}
	}
	if patch.Permissions != nil {
		if err := validatePermissions(*patch.Permissions); err != nil {
			return err
		}
	}
	if patch.Networks != nil {
		if _, err := NewNetworks(patch.Networks.List()); err != nil {
			return err
		}
	}
	if patch.ExpiresAt != nil {
		if err := ValidateExpiry(*patch.ExpiresAt, now); err != nil {
			return err
		}
	}
	return patch.validatePlan()
}

func (patch KeyPatch) validatePlan() error {
	if patch.Plan == nil {
		return nil
	}
	if !slices.Contains(Plans, *patch.Plan) {
		return Errorf(ValidationFailed, "plan %s", MustBeOneOf(Plans))
	}
	if patch.Limits == nil {
		return nil
	}
	_, err := patch.Plan.LimitsFor(*patch.Limits)
	return err
}

// Apply changes k at now, if the patch is valid and allowed for k. After an error
// k is unchanged.
func (patch KeyPatch) Apply(k *Key, now time.Time) error {
	if err := patch.Validate(now); err != nil {
		return err
	}
	if err := k.CheckChangeable(); err != nil {
		return err
	}
	if patch.Plan != nil || patch.Limits != nil {
		if err := k.SetPlan(patch.planFor(k)); err != nil {
			return err
		}
	}
	if patch.Name != nil {
		k.Name = *patch.Name
	}
	if patch.Permissions != nil {
		k.Permissions = *patch.Permissions
	}
	if patch.Networks != nil {
		k.Networks, _ = NewNetworks(patch.Networks.List()) // valid, as checked above
	}
	if patch.ExpiresAt != nil {
		k.ExpiresAt = *patch.ExpiresAt
	}
	if patch.Suspended != nil {
		k.setSuspended(*patch.Suspended, At(now))
	}
	return nil
}

func (k *Key) setSuspended(suspended bool, at Time) {
	if suspended {
		k.Suspend(at)
	} else {
		k.Resume()
	}
}

// planFor returns the plan and the custom limits that k gets.
func (patch KeyPatch) planFor(k *Key) (plan Plan, custom Limits) {
	plan = k.Plan
	if patch.Plan != nil {
		plan = *patch.Plan
	}
	switch {
	case patch.Limits != nil:
		custom = *patch.Limits
	case plan == PlanEnterprise && k.Plan == PlanEnterprise:
		custom = k.Limits
	}
	return plan, custom
}

// Manages reports whether the key can manage keys at now.
func (k *Key) Manages(now time.Time) bool {
	return k.Live(now) && !k.Suspended() && k.Permissions.Allows(Admin)
}

// Usage counts a key's requests in one hour.
type Usage struct {
	Hour     Time  `json:"hour"` // when it begins
	Admitted int64 `json:"admitted"`
	Refused  int64 `json:"refused"`
}

// UsageKept is how long usage is stored.
const UsageKept = 90 * 24 * time.Hour
