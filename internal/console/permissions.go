package console

import (
	"fmt"

	"animalstore"
)

// What pages, actions and parts of pages need: one of these permissions, or none.
const (
	petsRead    = animalstore.PetsRead
	petsWrite   = animalstore.PetsWrite
	ordersRead  = animalstore.OrdersRead
	ordersWrite = animalstore.OrdersWrite
	eventsRead  = animalstore.PetsRead | animalstore.OrdersRead
	admin       = animalstore.Admin
)

// needNamed are the needs by the names that templates use.
var needNamed = map[string]animalstore.Permissions{
	"pets:read": petsRead, "pets:write": petsWrite, "orders:read": ordersRead, "orders:write": ordersWrite,
	"events:read": eventsRead, "admin": admin,
}

// may reports whether the key may do something. Templates use [frame.May].
func (s *signedIn) may(need animalstore.Permissions) bool { return s.key.Permissions.Allows(need) }

// May reports whether the key may do something, by its name in needNamed. Templates leave
// out what it may not read or change.
func (f frame) May(name string) (bool, error) {
	need, known := needNamed[name]
	if !known {
		return false, fmt.Errorf("nothing needs %q", name)
	}
	return f.Key != nil && f.Key.Permissions.Allows(need), nil
}

// preset is a choice of permissions for a purpose.
type preset struct {
	Name, Title string
	Permissions animalstore.Permissions
	About       string
}

var presets = []preset{
	{"website", "Website", petsRead, "shows pets and their photos, and can’t see orders"},
	{"shop-floor", "Shop floor", petsWrite | ordersWrite, "does everything with pets and orders"},
	{"assistant", "Assistant", petsRead | ordersRead, "sees pets and orders, and changes nothing until you tick more"},
	{"everything", "Everything", animalstore.Read | animalstore.Write | admin, "manages keys and webhooks too"},
}

// permissionBox is a permission to choose in the form of a key.
type permissionBox struct{ Name, About string }

// permissionGroup is the boxes about one kind of thing.
type permissionGroup struct {
	Title string
	Boxes []permissionBox
}

var permissionGroups = []permissionGroup{
	{"Pets", []permissionBox{
		{"pets:read", "see pets, photos and categories, and how many pets there are"},
		{"pets:write", "also add, change and remove them"},
	}},
	{"Orders", []permissionBox{
		{"orders:read", "see orders"},
		{"orders:write", "also place, approve, deliver and cancel them, which changes the status of the pet"},
	}},
	{"The whole store", []permissionBox{
		{"read", "see everything in the store, but no keys, webhooks or status of the system"},
		{"write", "change everything in the store; without “read” it can’t see it"},
	}},
	{"Administration", []permissionBox{
		{"admin", "manage keys and webhooks, and see the status of the system: can give itself every permission"},
	}},
}
