package api_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"animalstore"
	"animalstore/internal/api"
	"animalstore/internal/keys"
)

// operation describes an operation for tests that loop over all of them.
type operation struct {
	id         string
	permission animalstore.Permissions // one of these, by the contract, not by the code; 0: none
	method     string                  // of the database, which it stands on
	ok         int                     // the status of success
	// call succeeds every time, with a key that may do everything.
	call func(t testing.TB, s *service) call
}

func fixed(c call) func(testing.TB, *service) call {
	return func(testing.TB, *service) call { return c }
}

// onPet is a call on a new pet.
func onPet(method, body string) func(testing.TB, *service) call {
	return func(t testing.TB, s *service) call {
		return call{method: method, path: fmt.Sprint("/v1/pets/", s.add(t, animalstore.NewPet{Name: "Rex"})[0].ID), body: body}
	}
}

// onPhoto is a call on a new photo.
func onPhoto(method, rest string) func(testing.TB, *service) call {
	return func(t testing.TB, s *service) call {
		return call{method: method, path: fmt.Sprint("/v1/photos/", s.addPhoto(t, s.add(t, animalstore.NewPet{Name: "Rex"})[0].ID).ID, rest)}
	}
}

// onOrder is a call on a new order.
func onOrder(method, body string) func(testing.TB, *service) call {
	return func(t testing.TB, s *service) call {
		order, _, err := s.db.DB.PlaceOrder(t.Context(), animalstore.NewOrder{PetID: s.add(t, animalstore.NewPet{Name: "Rex"})[0].ID}, animalstore.At(s.clock.Now()), nil)
		if err != nil {
			t.Fatal(err)
		}
		return call{method: method, path: fmt.Sprint("/v1/store/orders/", order.ID), body: body}
	}
}

// onKey is a call on a new key.
func onKey(method, rest, body string) func(testing.TB, *service) call {
	return func(t testing.TB, s *service) call {
		_, id := s.makeKey(t, keys.Mint(s.env))
		return call{method: method, path: fmt.Sprint("/v1/keys/", id, rest), body: body}
	}
}

// onWebhook is a call on a new webhook.
func onWebhook(method, rest, body string) func(testing.TB, *service) call {
	return func(t testing.TB, s *service) call {
		return call{method: method, path: fmt.Sprint("/v1/webhooks/", s.addWebhook(t).ID, rest), body: body}
	}
}

// onDelivery is a call on a new delivery.
func onDelivery(method, rest string) func(testing.TB, *service) call {
	return func(t testing.TB, s *service) call {
		webhook := s.addWebhook(t)
		delivery, err := s.db.DB.PingWebhook(t.Context(), webhook.ID, animalstore.WebhookPing, animalstore.At(s.clock.Now()))
		if err != nil {
			t.Fatal(err)
		}
		return call{method: method, path: fmt.Sprintf("/v1/webhooks/%d/deliveries/%d%s", webhook.ID, delivery.ID, rest)}
	}
}

// nextCategory is a category that wasn't counted yet.
var nextCategory atomic.Int64

var operations = []operation{
	{"listPets", animalstore.PetsRead, "Pets", 200, func(t testing.TB, s *service) call {
		s.add(t, animalstore.NewPet{Name: "Mia"}) // so that no page is in the cache
		return call{path: "/v1/pets?limit=7"}
	}},
	{"createPet", animalstore.PetsWrite, "CreatePet", 201, fixed(call{method: "POST", path: "/v1/pets", body: `{"name":"Rex","categoryId":7}`})},
	{"createPetBatch", animalstore.PetsWrite, "CreatePets", 201, fixed(call{method: "POST", path: "/v1/pets/batch", body: `{"pets":[{"name":"Rex","categoryId":7}]}`})},
	{"getPet", animalstore.PetsRead, "Pet", 200, onPet("GET", "")},
	{"updatePet", animalstore.PetsWrite, "UpdatePet", 200, onPet("PATCH", `{"status":"sold"}`)},
	{"deletePet", animalstore.PetsWrite, "DeletePet", 204, onPet("DELETE", "")},

	{"addPhoto", animalstore.PetsWrite, "AddPhoto", 201, func(t testing.TB, s *service) call {
		return upload(s.add(t, animalstore.NewPet{Name: "Rex"})[0].ID, "image/jpeg", smallJPEG)
	}},
	{"listPhotos", animalstore.PetsRead, "Photos", 200, fixed(call{path: "/v1/photos?petId=1,2"})},
	{"getPhoto", animalstore.PetsRead, "Photo", 200, onPhoto("GET", "")},
	{"deletePhoto", animalstore.PetsWrite, "DeletePhoto", 204, onPhoto("DELETE", "")},
	{"getImage", animalstore.PetsRead, "Image", 200, onPhoto("GET", "/image")},
	{"getThumbnail", animalstore.PetsRead, "ImagePart", 200, onPhoto("GET", "/thumbnail")},

	{"listOrders", animalstore.OrdersRead, "Orders", 200, fixed(call{path: "/v1/store/orders"})},
	{"placeOrder", animalstore.OrdersWrite, "PlaceOrder", 201, func(t testing.TB, s *service) call {
		return call{method: "POST", path: "/v1/store/orders", body: fmt.Sprintf(`{"petId":%d}`, s.add(t, animalstore.NewPet{Name: "Rex"})[0].ID)}
	}},
	{"getOrder", animalstore.OrdersRead, "Order", 200, onOrder("GET", "")},
	{"updateOrder", animalstore.OrdersWrite, "UpdateOrder", 200, onOrder("PATCH", `{"status":"approved"}`)},

	{"getInventory", animalstore.PetsRead, "CountPets", 200, func(t testing.TB, s *service) call {
		return call{path: fmt.Sprint("/v1/store/inventory?categoryId=", nextCategory.Add(1))} // not counted yet
	}},

	{"listCategories", animalstore.PetsRead, "Categories", 200, fixed(call{path: "/v1/categories"})},
	{"getCategory", animalstore.PetsRead, "Category", 200, func(t testing.TB, s *service) call {
		s.add(t, animalstore.NewPet{Name: "Rex", CategoryID: 7})
		return call{path: "/v1/categories/7"}
	}},
	{"putCategory", animalstore.PetsWrite, "PutCategory", 200, func(t testing.TB, s *service) call {
		s.add(t, animalstore.NewPet{Name: "Rex", CategoryID: 8})
		return call{method: "PUT", path: "/v1/categories/8", body: `{"name":"dogs"}`}
	}},

	{"listEvents", animalstore.PetsRead | animalstore.OrdersRead, "Events", 200, fixed(call{path: "/v1/events"})},

	// Its limits are read before the operation begins, and only of a new key.
	{"getLimits", 0, "LimitState", 200, fixed(call{path: "/v1/limits"})},
	{"getUsage", 0, "Usage", 200, fixed(call{path: "/v1/usage"})},

	{"listFailures", 0, "Failures", 200, fixed(call{path: "/v1/failures"})},

	{"getStatus", animalstore.Admin, "Size", 200, fixed(call{path: "/v1/status"})},

	{"listKeys", animalstore.Admin, "Keys", 200, fixed(call{path: "/v1/keys"})},
	{"createKey", animalstore.Admin, "CreateKey", 201, fixed(call{method: "POST", path: "/v1/keys", body: `{"name":"shop"}`})},
	{"getKey", animalstore.Admin, "Key", 200, onKey("GET", "", "")},
	{"updateKey", animalstore.Admin, "UpdateKey", 200, onKey("PATCH", "", `{"plan":"pro"}`)},
	{"revokeKey", animalstore.Admin, "UpdateKey", 204, onKey("DELETE", "", "")},
	{"rotateKey", animalstore.Admin, "RotateKey", 200, onKey("POST", "/rotate", `{"graceSeconds":60}`)},
	{"unbanKey", animalstore.Admin, "UpdateKey", 200, onKey("POST", "/unban", "")},
	{"getKeyUsage", animalstore.Admin, "Usage", 200, onKey("GET", "/usage", "")},

	{"listWebhooks", animalstore.Admin, "Webhooks", 200, fixed(call{path: "/v1/webhooks"})},
	{"createWebhook", animalstore.Admin, "CreateWebhook", 201, func(t testing.TB, s *service) call {
		s.makeRoomForWebhook(t)
		return call{method: "POST", path: "/v1/webhooks", body: `{"url":"https://example.com/hook"}`}
	}},
	{"getWebhook", animalstore.Admin, "Webhook", 200, onWebhook("GET", "", "")},
	{"updateWebhook", animalstore.Admin, "UpdateWebhook", 200, onWebhook("PATCH", "", `{"state":"paused"}`)},
	{"deleteWebhook", animalstore.Admin, "DeleteWebhook", 204, onWebhook("DELETE", "", "")},
	{"rotateWebhook", animalstore.Admin, "RotateWebhook", 200, onWebhook("POST", "/rotate", `{"graceSeconds":60}`)},
	{"pingWebhook", animalstore.Admin, "PingWebhook", 202, onWebhook("POST", "/ping", `{"type":"pet.created"}`)},
	{"listDeliveries", animalstore.Admin, "Deliveries", 200, onWebhook("GET", "/deliveries", "")},
	{"getDelivery", animalstore.Admin, "Delivery", 200, onDelivery("GET", "")},
	{"retryDelivery", animalstore.Admin, "RetryDelivery", 202, onDelivery("POST", "/retry")},
	{"retryDeliveries", animalstore.Admin, "RetryDeliveries", 202, onWebhook("POST", "/deliveries/retry", `{"state":"failed"}`)},
}

// allowed reports whether the contract allows the operation to a key with these permissions.
func (op *operation) allowed(p animalstore.Permissions) bool {
	const (
		readsPets    = animalstore.Read | animalstore.PetsRead | animalstore.PetsWrite
		readsOrders  = animalstore.Read | animalstore.OrdersRead | animalstore.OrdersWrite
		writesPets   = animalstore.Write | animalstore.PetsWrite
		writesOrders = animalstore.Write | animalstore.OrdersWrite
	)
	by := map[animalstore.Permissions]animalstore.Permissions{
		0:                      animalstore.AllPermissions,
		animalstore.Admin:      animalstore.Admin,
		animalstore.PetsRead:   readsPets,
		animalstore.PetsWrite:  writesPets,
		animalstore.OrdersRead: readsOrders, animalstore.OrdersWrite: writesOrders,
		animalstore.PetsRead | animalstore.OrdersRead: readsPets | readsOrders,
	}
	return p&by[op.permission] != 0
}

// TestOperationsAreTheRoutes: a route that tests do not know of is not tested. Those that they
// know of are in the document, or TestEveryOperation fails.
func TestOperationsAreTheRoutes(t *testing.T) {
	known := map[string]operation{}
	for _, op := range operations {
		known[op.id] = op
	}
	for _, route := range api.Operations() {
		op, ok := known[route.ID]
		switch {
		case !ok:
			t.Errorf("%s %s: got no row for %s in operations, want its permission said there", route.Method, route.Path, route.ID)
		case route.Permission != op.permission || api.PermissionOf(route.ID) != op.permission:
			t.Errorf("%s: got permission %q, want %q", route.ID, route.Permission, op.permission)
		}
		delete(known, route.ID)
	}
	for id := range known {
		t.Errorf("got a row for %s, want none: there is no such route", id)
	}
}
