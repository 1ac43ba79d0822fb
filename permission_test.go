package animalstore

import (
	"testing"
)

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

// TestPermissionNames: every permission has a name of its own, which reads back.
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
