package api_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"animalstore"
	"animalstore/internal/db"
)

// TestNotFound: whatever is missing in the database, its error names it.
func TestNotFound(t *testing.T) {
	s := start(t)
	for _, test := range []struct {
		method  string // of the database
		call    call
		code    animalstore.Code
		message string
	}{
		{"Pet", call{path: petPath(17)}, "pet_not_found", "there is no pet with id 17"},
		{"UpdatePet", patch(petPath(17), `{"name":"Rex"}`), "pet_not_found", "there is no pet with id 17"},
		{"DeletePet", remove(petPath(17)), "pet_not_found", "there is no pet with id 17"},
		{"PlaceOrder", post("/v1/store/orders", `{"petId":17}`), "pet_not_found", "there is no pet with id 17"},
		{"Order", call{path: orderPath(17)}, "order_not_found", "there is no order with id 17"},
		{"UpdateOrder", patch(orderPath(17), `{"status":"approved"}`), "order_not_found", "there is no order with id 17"},
		{"Category", call{path: "/v1/categories/-17"}, "category_not_found", "there is no category with id -17"},
		{"Key", call{path: "/v1/keys/17"}, "key_not_found", "there is no key with id 17"},
		{"Key", call{path: "/v1/keys/17/usage"}, "key_not_found", "there is no key with id 17"},
		{"UpdateKey", patch("/v1/keys/17", `{"name":"shop"}`), "key_not_found", "there is no key with id 17"},
		{"UpdateKey", remove("/v1/keys/17"), "key_not_found", "there is no key with id 17"},
		{"UpdateKey", post("/v1/keys/17/unban", ""), "key_not_found", "there is no key with id 17"},
		{"RotateKey", post("/v1/keys/17/rotate", ""), "key_not_found", "there is no key with id 17"},
	} {
		t.Run(test.call.method+test.call.path, func(t *testing.T) {
			s.db.arm(test.method, func(context.Context) error { return fmt.Errorf("look it up: %w", db.ErrNotFound) })
			defer s.db.arm(test.method, nil)
			test.call.key = s.admin
			got := s.do(t, test.call)
			got.want(t, http.StatusNotFound, test.code)
			got.wantMessage(t, test.message)
		})
	}
}
