package animalstore

import (
	"encoding/json"
	"strings"
)

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
			return 0, Errorf(ValidationFailed, "permissions must be a comma-separated list of %s, not %q", JoinOr(AllPermissions.Names()), s)
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
