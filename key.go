package animalstore

import (
	"encoding/json"
	"net/netip"
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

// Plan determines the limits of a key.
type Plan string

const (
	PlanFree       Plan = "free"
	PlanPro        Plan = "pro"
	PlanBusiness   Plan = "business"
	PlanEnterprise Plan = "enterprise"
)

// Plans are all plans, smallest first.
var Plans = []Plan{PlanFree, PlanPro, PlanBusiness, PlanEnterprise}

// Limits are the numbers of requests that a key may send.
type Limits struct {
	PerMinute int64 `json:"perMinute"`
	PerDay    int64 `json:"perDay"`
}

// planLimits has no row for enterprise, whose limits are set on each key.
var planLimits = map[Plan]Limits{
	PlanFree:     {PerMinute: 60, PerDay: 1_000},
	PlanPro:      {PerMinute: 300, PerDay: 10_000},
	PlanBusiness: {PerMinute: 1_000, PerDay: 100_000},
}

// LimitsFor returns the limits of a key on plan p. Enterprise needs both custom
// limits; no other plan may have any.
func (p Plan) LimitsFor(custom Limits) (Limits, error) {
	if p == PlanEnterprise {
		if custom.PerMinute <= 0 || custom.PerDay <= 0 {
			return Limits{}, Errorf(ValidationFailed,
				"plan enterprise needs its own limits: give both a per-minute and a per-day limit, positive integers")
		}
		return custom, nil
	}
	fixed, ok := planLimits[p]
	if !ok {
		return Limits{}, Errorf(ValidationFailed, "plan %s", MustBeOneOf(Plans))
	}
	if custom != (Limits{}) {
		return Limits{}, Errorf(ValidationFailed,
			"this plan has fixed limits (%d a minute, %d a day): only enterprise can have its own", fixed.PerMinute, fixed.PerDay)
	}
	return fixed, nil
}

// LimitStatus is what a key may do, and how much of its plan it has used.
type LimitStatus struct {
	Plan        Plan         `json:"plan"`
	Permissions Permissions  `json:"permissions"`
	Minute      LimitWindow  `json:"minute"`
	Day         LimitWindow  `json:"day"`
	Strikes     LimitStrikes `json:"strikes"`
	Ban         LimitBan     `json:"ban"`
}

// LimitWindow is how much of a window a key has used.
type LimitWindow struct {
	Limit     int64 `json:"limit"`
	Remaining int64 `json:"remaining"`
	Reset     Time  `json:"reset"` // when the window ends
}

// LimitStrikes are requests that were sent although the service had said to wait.
type LimitStrikes struct {
	Count     int64 `json:"count"`     // in the last ten minutes
	Threshold int64 `json:"threshold"` // the number that leads to a ban
}

// LimitBan is the state of a key's ban.
type LimitBan struct {
	Active bool  `json:"active"`
	Until  Time  `json:"until"` // zero, null in JSON, unless active
	Level  int64 `json:"level"` // number of consecutive bans; each makes the next one longer
}

// Permissions is a set of permissions: those that a key was given, or those that an
// operation needs. [Permissions.Allows] compares the two.
type Permissions uint8

const (
	Read        Permissions = 1 << iota // read the store, but no keys, webhooks or status
	Write                               // every change in the store
	Admin                               // keys, webhooks and the state of the service
	PetsRead                            // read pets, photos, categories and the inventory
	PetsWrite                           // change and read them
	OrdersRead                          // read orders
	OrdersWrite                         // place, change and read orders

	// AllPermissions contains every permission.
	AllPermissions Permissions = 1<<iota - 1
)

var permissionNames = []struct {
	p    Permissions
	name string
}{
	{Read, "read"}, {Write, "write"}, {Admin, "admin"},
	{PetsRead, "pets:read"}, {PetsWrite, "pets:write"}, {OrdersRead, "orders:read"}, {OrdersWrite, "orders:write"},
}

// ParsePermissions reads a comma-separated list of permissions.
func ParsePermissions(s string) (Permissions, error) {
	var set Permissions
	for part := range strings.SplitSeq(s, ",") {
		p, ok := ParsePermission(strings.TrimSpace(part))
		if !ok {
			return 0, Errorf(ValidationFailed, "permissions must be a comma-separated list of %s, not %q",
				JoinOr(AllPermissions.Names()), s)
		}
		set |= p
	}
	return set, nil
}

// ParsePermission reads the name of one permission.
func ParsePermission(s string) (Permissions, bool) {
	for _, n := range permissionNames {
		if s == n.name {
			return n.p, true
		}
	}
	return 0, false
}

// Has reports whether the set itself contains every permission in p2. To decide what a key
// may do, use [Permissions.Allows].
func (p Permissions) Has(p2 Permissions) bool { return p&p2 == p2 }

// Allows reports whether a key with these permissions may call an operation that needs one
// of need. If need is 0, every key may.
func (p Permissions) Allows(need Permissions) bool { return need == 0 || p.granted()&need != 0 }

// granted returns the set with the permissions that others in it include. Write doesn't
// include reading.
func (p Permissions) granted() Permissions {
	all := p
	for _, includes := range []struct{ p, others Permissions }{
		{Read, PetsRead | OrdersRead},
		{Write, PetsWrite | OrdersWrite},
		{PetsWrite, PetsRead},
		{OrdersWrite, OrdersRead},
	} {
		if p.Has(includes.p) {
			all |= includes.others
		}
	}
	return all
}

// Names returns the permissions in the set, in a fixed order.
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

// UnmarshalJSON reads an array of names and ignores unknown ones: a newer service may have
// more permissions.
func (p *Permissions) UnmarshalJSON(text []byte) error {
	var names []string
	if err := json.Unmarshal(text, &names); err != nil {
		return err
	}
	*p = 0
	for _, name := range names {
		known, _ := ParsePermission(name)
		*p |= known
	}
	return nil
}

func validatePermissions(p Permissions) error {
	if p == 0 {
		return Errorf(ValidationFailed, "permissions must name at least one of %s", JoinNames(AllPermissions.Names()))
	}
	return nil
}

// MaxNetworks is how many networks a key can have.
const MaxNetworks = 20

// Networks are the networks that a key works from: a comma-separated list of prefixes such
// as 203.0.113.0/24. If it is empty, the key works from anywhere. In JSON it is an array.
type Networks string

// NewNetworks checks a list of networks and addresses. In the result, an address is a network
// of one, and there are no duplicates.
func NewNetworks(networks []string) (Networks, error) {
	if len(networks) > MaxNetworks {
		return "", Errorf(ValidationFailed, "networks must have at most %d items", MaxNetworks)
	}
	var list []string
	for i, text := range networks {
		prefix, ok := parseNetwork(text)
		if !ok {
			return "", Errorf(ValidationFailed,
				"networks must be networks such as 203.0.113.0/24 or 2001:db8::/32, or addresses: number %d isn't", i+1)
		}
		if prefix != prefix.Masked() {
			return "", Errorf(ValidationFailed, "networks must have no bits set after the prefix, as in 203.0.113.0/24: number %d has", i+1)
		}
		if text := prefix.String(); !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	return Networks(strings.Join(list, ",")), nil
}

// parseNetwork reads a prefix or an address. IPv4 written as IPv6, such as
// ::ffff:203.0.113.7, becomes IPv4, like the addresses of callers.
func parseNetwork(text string) (netip.Prefix, bool) {
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		addr, err := netip.ParseAddr(text)
		if err != nil || addr.Zone() != "" {
			return netip.Prefix{}, false
		}
		prefix = netip.PrefixFrom(addr, addr.BitLen())
	}
	const mappedBits = 96
	if prefix.Addr().Is4In6() && prefix.Bits() >= mappedBits {
		prefix = netip.PrefixFrom(prefix.Addr().Unmap(), prefix.Bits()-mappedBits)
	}
	return prefix, true
}

// List returns the networks.
func (n Networks) List() []string {
	if n == "" {
		return []string{}
	}
	return strings.Split(string(n), ",")
}

// Allow reports whether a key with these networks works from an address. IPv4 written as
// IPv6 must be unmapped before.
func (n Networks) Allow(addr netip.Addr) bool {
	if n == "" {
		return true
	}
	addr = addr.WithZone("") // a prefix never contains an address with a zone
	return slices.ContainsFunc(n.List(), func(text string) bool {
		prefix, err := netip.ParsePrefix(text)
		return err == nil && prefix.Contains(addr)
	})
}

// MarshalJSON writes an array.
func (n Networks) MarshalJSON() ([]byte, error) { return json.Marshal(n.List()) }

// UnmarshalJSON reads an array, without checking the networks.
func (n *Networks) UnmarshalJSON(data []byte) error {
	var list []string
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	*n = Networks(strings.Join(list, ","))
	return nil
}
