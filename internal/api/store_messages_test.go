package api_test

import (
	"strings"
	"testing"

	"animalstore"
)

// TestStoreMessages: every refusal names what was wrong and what would be right.
// Pet 1 is available, 2 sold, 3 ordered by order 1; order 2 is delivered.
func TestStoreMessages(t *testing.T) {
	s := start(t)
	s.addOne(t, "available")
	s.addOne(t, "sold")
	s.order(t, s.addOne(t, "available").ID)
	s.order(t, s.addOne(t, "available").ID, stepsTo["delivered"]...)
	s.do(t, retried("/v1/pets", rex, "used")).want(t, 201, "")
	s.do(t, retried("/v1/store/orders", `{"petId":5}`, "used")).want(t, 201, "")
	reader := s.key(t, animalstore.Read)
	as := func(key string, c call) call { c.key = key; return c }
	const pet, order, category = "/v1/pets/1", "/v1/store/orders/1", "/v1/categories/7"
	tests := []struct {
		name string
		call call
		want int
		code animalstore.Code
		says string // parts, with | between them
	}{
		{"PATCH pet: no name", patch(pet, `{"name":null}`), 400, "validation_failed", "name must be a string"},
		{"PATCH pet: empty name", patch(pet, `{"name":""}`), 400, "validation_failed", "name must not be empty|1 to 1024"},
		{"PATCH pet: long name", patch(pet, `{"name":"`+strings.Repeat("x", 1025)+`"}`), 400, "validation_failed", "name|at most 1024|1025"},
		{"PATCH pet: blank name", patch(pet, `{"name":" \t\u00a0"}`), 400, "validation_failed", "name|white space|visible"},
		{"PATCH pet: NUL", patch(pet, `{"name":"a\u0000"}`), 400, "validation_failed", "name|U+0000"},
		{"PATCH pet: no category", patch(pet, `{"categoryId":null}`), 400, "validation_failed", "categoryId must be an integer"},
		{"PATCH pet: half a category", patch(pet, `{"categoryId":1.5}`), 400, "validation_failed", "categoryId|integer|fraction"},
		{"PATCH pet: too large a category", patch(pet, `{"categoryId":9223372036854775808}`), 400, "validation_failed", "categoryId|9223372036854775807"},
		{"PATCH pet: no status", patch(pet, `{"status":null}`), 400, "validation_failed", "status must be one of available, pending, sold"},
		{"PATCH pet: unknown status", patch(pet, `{"status":"Sold"}`), 400, "validation_failed", "status must be one of available, pending, sold"},
		{"PATCH pet: no body", patch(pet, ``), 400, "malformed_json", "body is empty|JSON object"},
		{"PATCH pet: an array", patch(pet, `[]`), 400, "malformed_json", "not a JSON object|braces"},
		{"PATCH pet: null", patch(pet, `null`), 400, "malformed_json", "not a JSON object"},
		{"PATCH pet: twice a name", patch(pet, `{"name":"a","name":"b"}`), 400, "malformed_json", "two fields of the same name|send each once"},
		{"PATCH pet: half a body", patch(pet, `{"name":`), 400, "malformed_json", "ends in the middle"},
		{"PATCH pet: more than a body", patch(pet, `{} {}`), 400, "malformed_json", "something after"},
		{"PATCH pet: text", with(patch(pet, `{}`), "Content-Type", "text/plain"), 415, "unsupported_media_type", "application/json or application/merge-patch+json"},
		{"PATCH pet: too much", patch(pet, `{"name":"`+strings.Repeat("x", 1<<20)+`"}`), 413, "payload_too_large", "at most 1048576 bytes"},
		{"PATCH pet: none", patch("/v1/pets/99", `{}`), 404, "pet_not_found", "no pet with id 99"},
		{"PATCH pet: no id", patch("/v1/pets/x", `{}`), 404, "pet_not_found", "positive integer"},
		{"PATCH pet: sold", patch("/v1/pets/2", `{"status":"pending"}`), 409, "invalid_transition", "pet 2|sold|final"},
		{"PATCH pet: ordered", patch("/v1/pets/3", `{"status":"sold"}`), 409, "invalid_transition", "pet 3|open order|move the order instead"},
		{"PATCH pet: stale", patch(pet, `{}`, "If-Match", `"x"`), 412, "precondition_failed", "If-Match|ETag|read it again"},
		{"PATCH pet: reader", as(reader, patch(pet, `{}`)), 403, "insufficient_permission", "write|yours has read"},
		{"DELETE pet: none", remove("/v1/pets/99"), 404, "pet_not_found", "no pet with id 99"},
		{"DELETE pet: ordered", remove("/v1/pets/3"), 409, "invalid_transition", "pet 3|open order|deliver or cancel"},
		{"DELETE pet: stale", remove(pet, "If-Match", `"x"`), 412, "precondition_failed", "If-Match|read it again"},
		{"DELETE pet: reader", as(reader, remove(pet)), 403, "insufficient_permission", "write|yours has read"},
		{"PUT pet", put(pet, `{}`), 405, "method_not_allowed", "PUT|DELETE, GET, HEAD, OPTIONS, PATCH"},

		{"POST order: no pet named", post("/v1/store/orders", `{}`), 400, "validation_failed", "petId is required"},
		{"POST order: null", post("/v1/store/orders", `{"petId":null}`), 400, "validation_failed", "petId must be an integer"},
		{"POST order: text", post("/v1/store/orders", `{"petId":"1"}`), 400, "validation_failed", "petId must be an integer"},
		{"POST order: none", post("/v1/store/orders", `{"petId":99}`), 404, "pet_not_found", "no pet with id 99"},
		{"POST order: sold", post("/v1/store/orders", `{"petId":2}`), 409, "pet_not_available", "pet 2 is sold|only an available one"},
		{"POST order: another body", retried("/v1/store/orders", `{"petId":1}`, "used"), 422, "idempotency_key_reused", "Idempotency-Key|another body|new key|same body"},
		{"POST pet: another body", retried("/v1/pets", `{"name":"Max","categoryId":7}`, "used"), 422, "idempotency_key_reused", "Idempotency-Key|another body|new key|same body"},
		{"POST pet: a token with a space", retried("/v1/pets", rex, "a b"), 400, "invalid_parameter", "Idempotency-Key|1 to 255 visible ASCII"},
		{"PATCH order: nothing", patch(order, `{}`), 400, "validation_failed", "status is required"},
		{"PATCH order: null", patch(order, `{"status":null}`), 400, "validation_failed", "status must be one of placed, approved, delivered, cancelled"},
		{"PATCH order: a status of pets", patch(order, `{"status":"sold"}`), 400, "validation_failed", "status must be one of placed, approved, delivered, cancelled"},
		{"PATCH order: too far", patch(order, `{"status":"delivered"}`), 409, "invalid_transition", "order 1 cannot become delivered|it is placed|approved or cancelled"},
		{"PATCH order: over", patch("/v1/store/orders/2", `{"status":"cancelled"}`), 409, "invalid_transition", "order 2 is delivered, which is final"},
		{"PATCH order: stale", patch(order, `{"status":"approved"}`, "If-Match", `"x"`), 412, "precondition_failed", "If-Match|read it again"},
		{"PATCH order: none", patch("/v1/store/orders/99", `{"status":"approved"}`), 404, "order_not_found", "no order with id 99"},
		{"GET order: none", call{path: "/v1/store/orders/99"}, 404, "order_not_found", "no order with id 99"},
		{"GET order: no id", call{path: "/v1/store/orders/x"}, 404, "order_not_found", "positive integer"},
		{"DELETE order", remove(order), 405, "method_not_allowed", "DELETE|GET, HEAD, OPTIONS, PATCH"},

		{"PUT category: no name", put(category, `{}`), 400, "validation_failed", "name is required"},
		{"PUT category: null", put(category, `{"name":null}`), 400, "validation_failed", "name must be a string"},
		{"PUT category: empty", put(category, `{"name":""}`), 400, "validation_failed", "name must not be empty"},
		{"PUT category: no id", put("/v1/categories/x", `{"name":"x"}`), 404, "category_not_found", "64-bit integer"},
		{"PUT category: stale", put(category, `{"name":"x"}`, "If-Match", `"x"`), 412, "precondition_failed", "If-Match|read it again"},
		{"GET category: none", call{path: "/v1/categories/99"}, 404, "category_not_found", "no category with id 99"},
		{"POST category", post("/v1/categories", `{"name":"x"}`), 405, "method_not_allowed", "POST|GET, HEAD, OPTIONS"},

		{"GET pets: categoryId", call{path: "/v1/pets?categoryId=x"}, 400, "invalid_parameter", "categoryId must be a 64-bit integer"},
		{"GET pets: id", call{path: "/v1/pets?id=x"}, 400, "invalid_parameter", "id must be|1 to 100 positive integers"},
		{"GET pets: cursor", call{path: "/v1/pets?cursor=x"}, 400, "invalid_cursor", "cursor|Link header|start over"},
		{"GET orders: petId", call{path: "/v1/store/orders?petId=0"}, 400, "invalid_parameter", "petId must be a positive integer"},
		{"GET orders: status", call{path: "/v1/store/orders?status=sold"}, 400, "invalid_parameter", "status must be one of placed, approved, delivered, cancelled"},
		{"GET orders: limit", call{path: "/v1/store/orders?limit=0"}, 400, "invalid_parameter", "limit must be an integer from 1 to 100"},
		{"GET categories: limit", call{path: "/v1/categories?limit=101"}, 400, "invalid_parameter", "limit must be an integer from 1 to 100"},
		{"GET categories: cursor", call{path: "/v1/categories?cursor=x"}, 400, "invalid_cursor", "cursor|Link header|start over"},
		{"GET pet: stale", with(call{path: pet}, "If-Match", `"x"`), 412, "precondition_failed", "If-Match"},
	}
	before := s.snapshot(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := s.do(t, bad(test.call))
			got.want(t, test.want, test.code)
			got.wantMessage(t, strings.Split(test.says, "|")...)
		})
	}
	if after := s.snapshot(t); after != before {
		t.Errorf("what was refused changed something:\nbefore %s\nafter  %s", before, after)
	}
}

// snapshot is all there is, as it is listed.
func (s *service) snapshot(t testing.TB) string {
	t.Helper()
	var all strings.Builder
	for _, path := range []string{"/v1/pets?limit=100", "/v1/store/orders?limit=100", "/v1/categories?limit=100"} {
		all.Write(s.do(t, call{path: path}).body)
	}
	return all.String()
}

// TestOrderOfStoreChecks: a request with several faults is answered for the
// first of them.
func TestOrderOfStoreChecks(t *testing.T) {
	s := start(t)
	s.addOne(t, "sold")                        // 1
	s.order(t, s.addOne(t, "available").ID)    // order 1 on pet 2
	s.do(t, retried("/v1/pets", rex, "token")) // 3
	first := s.do(t, retried("/v1/store/orders", `{"petId":3}`, "token"))
	s.do(t, patch(orderPath(2), `{"status":"cancelled"}`)).want(t, 200, "")
	s.do(t, remove(petPath(3))).want(t, 204, "")
	text := []string{"Content-Type", "text/plain", "If-Match", `"x"`}
	large := strings.Repeat("x", 1<<20+1)
	for _, test := range []struct {
		name string
		call call
		want int
		code animalstore.Code
	}{
		{"size before media type and pet", with(patch("/v1/pets/x", large), text...), 413, "payload_too_large"},
		{"media type before content and pet", with(patch("/v1/pets/x", "x"), text...), 415, "unsupported_media_type"},
		{"content before an id that is none", patch("/v1/pets/x", "x", "If-Match", `"x"`), 400, "malformed_json"},
		{"content before an order's id that is none", patch("/v1/store/orders/x", `{}`), 400, "validation_failed"},
		{"content before a category's id that is none", put("/v1/categories/x", `{}`), 400, "validation_failed"},
		{"content before an absent pet", patch("/v1/pets/99", `{"name":""}`, "If-Match", `"x"`), 400, "validation_failed"},
		{"absence before condition", patch("/v1/pets/99", `{}`, "If-Match", `"x"`), 404, "pet_not_found"},
		{"absence before condition, removing", remove("/v1/pets/99", "If-Match", `"x"`), 404, "pet_not_found"},
		{"absence before condition, of an order", patch("/v1/store/orders/99", `{"status":"placed"}`, "If-Match", `"x"`), 404, "order_not_found"},
		{"condition before state", patch("/v1/pets/1", `{"status":"available"}`, "If-Match", `"x"`), 412, "precondition_failed"},
		{"condition before an open order", remove("/v1/pets/2", "If-Match", `"x"`), 412, "precondition_failed"},
		{"condition before an order's state", patch("/v1/store/orders/1", `{"status":"delivered"}`, "If-Match", `"x"`), 412, "precondition_failed"},
		{"state", patch("/v1/store/orders/1", `{"status":"delivered"}`, "If-Match", "*"), 409, "invalid_transition"},
		{"content before token", retried("/v1/pets", `{}`, "token"), 400, "validation_failed"},
		{"token's grammar before its use", retried("/v1/store/orders", `{"petId":99}`, "a b"), 400, "invalid_parameter"},
		{"reuse before absence", retried("/v1/store/orders", `{"petId":99}`, "token"), 422, "idempotency_key_reused"},
		{"reuse before availability", retried("/v1/store/orders", `{"petId":1}`, "token"), 422, "idempotency_key_reused"},
		{"absence before availability", retried("/v1/store/orders", `{"petId":99}`, "new"), 404, "pet_not_found"},
	} {
		t.Run(test.name, func(t *testing.T) { s.do(t, bad(test.call)).want(t, test.want, test.code) })
	}
	t.Run("replay before absence", func(t *testing.T) {
		wantReplay(t, first, s.do(t, retried("/v1/store/orders", `{"petId":3}`, "token")))
	})
}
