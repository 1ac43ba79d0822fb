package api_test

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"

	"animalstore"
)

// unchecked doesn't compare responses with the document, for tests that send
// thousands of similar requests.
func (s *service) unchecked() *service {
	quick := *s
	quick.client = &http.Client{Transport: s.client.Transport.(*checkingTransport).base}
	return &quick
}

func petPath(id int64) string   { return fmt.Sprint("/v1/pets/", id) }
func orderPath(id int64) string { return fmt.Sprint("/v1/store/orders/", id) }

func patch(path, body string, header ...string) call {
	return with(call{method: "PATCH", path: path, body: body}, header...)
}

func post(path, body string, header ...string) call {
	return with(call{method: "POST", path: path, body: body}, header...)
}

func put(path, body string, header ...string) call {
	return with(call{method: "PUT", path: path, body: body}, header...)
}

func remove(path string, header ...string) call {
	return with(call{method: "DELETE", path: path}, header...)
}

// with adds headers, given as alternating names and values.
func with(c call, header ...string) call {
	added := c.header.Clone()
	if added == nil {
		added = http.Header{}
	}
	for i := 0; i+1 < len(header); i += 2 {
		added.Add(header[i], header[i+1])
	}
	c.header = added
	return c
}

// bad marks a call that breaks the document on purpose.
func bad(c call) call { c.bad = true; return c }

// read decodes a response that must have this status.
func read[T any](t testing.TB, a response, status int) (v T) {
	t.Helper()
	if err := json.Unmarshal(a.body, &v); err != nil || a.status != status {
		t.Fatalf("got %v, want %d and a %T (%v)", a, status, v, err)
	}
	return v
}

// addOne creates a pet with this status.
func (s *service) addOne(t testing.TB, status animalstore.PetStatus) animalstore.Pet {
	t.Helper()
	return s.add(t, animalstore.NewPet{Name: "Rex", CategoryID: 7, Status: status})[0]
}

// order places an order over HTTP and moves it through the given statuses.
func (s *service) order(t testing.TB, petID int64, steps ...animalstore.OrderStatus) animalstore.Order {
	t.Helper()
	order := read[animalstore.Order](t, s.do(t, post("/v1/store/orders", fmt.Sprintf(`{"petId":%d}`, petID))), 201)
	for _, step := range steps {
		order = read[animalstore.Order](t, s.do(t, patch(orderPath(order.ID), fmt.Sprintf(`{"status":%q}`, step))), 200)
	}
	return order
}

func categoryPath(id any) string { return fmt.Sprint("/v1/categories/", id) }

func TestCategoryIDs(t *testing.T) {
	s := start(t)
	var want []animalstore.Category
	for _, id := range []int64{math.MinInt64, -40, -1, 0, 3, 40, 1 << 53, 1<<53 + 1, math.MaxInt64} {
		c := animalstore.Category{ID: id, Name: fmt.Sprint("number ", id)}
		s.do(t, put(categoryPath(id), fmt.Sprintf(`{"name":%q}`, c.Name))).want(t, 201, "")
		if got := read[animalstore.Category](t, s.do(t, call{path: categoryPath(id)}), 200); got != c {
			t.Errorf("got %+v, want %+v", got, c)
		}
		want = append(want, c)
	}
	for _, limit := range []int{1, 4, 9, 100} {
		if got := slices.Concat(walk[animalstore.Category](t, s, fmt.Sprint("/v1/categories?limit=", limit))...); !slices.Equal(got, want) {
			t.Errorf("limit %d: got %+v\nwant %+v", limit, got, want)
		}
	}
	for _, id := range []string{"abc", "1.0", "01", "+1", "-0", "1e2", "9223372036854775808", "-9223372036854775809", "0x1", "%201", "1%2C2"} {
		for _, c := range []call{{path: categoryPath(id)}, put(categoryPath(id), `{"name":"x"}`)} {
			got := s.do(t, bad(c))
			got.want(t, 404, animalstore.CategoryNotFound)
		}
	}
}

func TestPlaceOrder(t *testing.T) {
	s := start(t)
	pet := s.addOne(t, "available")
	got := s.do(t, post("/v1/store/orders", fmt.Sprintf(`{"petId":%d,"id":99,"status":"delivered","quantity":1,"reference":"A <17>"}`, pet.ID)))
	order := read[animalstore.Order](t, got, 201)
	const form = `{"id":%d,"petId":%d,"status":"placed","reference":"A <17>","note":null,"createdAt":"2026-11-15T12:00:00.000Z","updatedAt":"2026-11-15T12:00:00.000Z"}`
	want := fmt.Sprintf(form, order.ID, pet.ID)
	if string(got.body) != want+"\n" || got.header.Get("Location") != orderPath(order.ID) {
		t.Errorf("got  %vat %s\nwant %s", got, got.header.Get("Location"), want)
	}
	again := s.do(t, call{path: orderPath(order.ID)})
	if string(again.body) != string(got.body) || again.header.Get("ETag") != got.header.Get("ETag") {
		t.Errorf("read %v with ETag %s, want %v with %s", again, again.header.Get("ETag"), got, got.header.Get("ETag"))
	}
	if listed := s.do(t, call{path: "/v1/store/orders?reference=A+%3C17%3E"}); string(listed.body) != "["+want+"]\n" {
		t.Errorf("listed %v, want %s", listed, want)
	}
	for _, id := range []string{"999999", "0", "-1"} {
		s.do(t, bad(post("/v1/store/orders", `{"petId":`+id+`}`))).want(t, 404, animalstore.PetNotFound)
	}
}

// TestOrderOfStoreChecks: a request with several faults gets the response to the
// first of them.
func TestOrderOfStoreChecks(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.addOne(t, "sold")                        // 1
	s.order(t, s.addOne(t, "available").ID)    // order 1 on pet 2
	s.do(t, retried("/v1/pets", rex, "token")) // 3
	first := s.do(t, retried("/v1/store/orders", `{"petId":3}`, "token"))
	s.do(t, patch(orderPath(2), `{"status":"cancelled"}`)).want(t, 200, "")
	s.do(t, remove(petPath(3))).want(t, 204, "")
	_, revoked := s.with(t, everything, nil)
	if _, err := s.revoke(t, revoked); err != nil || revoked != 3 {
		t.Fatalf("revoked key %d, %v, want key 3", revoked, err)
	}
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
		{"content before a key that doesn't exist", patch("/v1/keys/99", `{"name":""}`), 400, "validation_failed"},
		{"content before a revoked key", patch("/v1/keys/3", `{"name":""}`), 400, "validation_failed"},
		{"condition before a revoked key", patch("/v1/keys/3", `{"name":"x"}`, "If-Match", `"x"`), 412, "precondition_failed"},
		{"a revoked key", patch("/v1/keys/3", `{}`), 409, "invalid_transition"},
		{"a revoked key, rotated", post("/v1/keys/3/rotate", `{"graceSeconds":0}`), 409, "invalid_transition"},
		{"a revoked key, revoked again", remove("/v1/keys/3"), 204, ""},
		{"grace period before a key that doesn't exist", post("/v1/keys/99/rotate", `{"graceSeconds":-1}`), 400, "validation_failed"},
		{"query before a key that doesn't exist", call{path: "/v1/keys/99/usage?hours=0"}, 400, "invalid_parameter"},
		{"content before an absent pet", patch("/v1/pets/99", `{"name":""}`, "If-Match", `"x"`), 400, "validation_failed"},
		{"absence before condition", patch("/v1/pets/99", `{}`, "If-Match", `"x"`), 404, "pet_not_found"},
		{"absence before condition, removing", remove("/v1/pets/99", "If-Match", `"x"`), 404, "pet_not_found"},
		{"condition before state", patch("/v1/pets/1", `{"status":"available"}`, "If-Match", `"x"`), 412, "precondition_failed"},
		{"an open order", remove("/v1/pets/2"), 409, "invalid_transition"},
		{"an open order, moving the pet", patch("/v1/pets/2", `{"status":"sold"}`), 409, "invalid_transition"},
		{"condition before an open order", remove("/v1/pets/2", "If-Match", `"x"`), 412, "precondition_failed"},
		{"state", patch("/v1/store/orders/1", `{"status":"delivered"}`, "If-Match", "*"), 409, "invalid_transition"},
		{"content before token", retried("/v1/pets", `{}`, "token"), 400, "validation_failed"},
		{"token's grammar before its use", retried("/v1/store/orders", `{"petId":99}`, "a b"), 400, "invalid_parameter"},
		{"reuse before absence", retried("/v1/store/orders", `{"petId":99}`, "token"), 422, "idempotency_key_reused"},
		{"reuse before availability", retried("/v1/store/orders", `{"petId":1}`, "token"), 422, "idempotency_key_reused"},
		{"absence before availability", retried("/v1/store/orders", `{"petId":99}`, "new"), 404, "pet_not_found"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if strings.HasPrefix(test.call.path, "/v1/keys") {
				test.call.key = s.admin
			}
			s.do(t, bad(test.call)).want(t, test.want, test.code)
		})
	}
	t.Run("replay before absence", func(t *testing.T) {
		wantReplay(t, first, s.do(t, retried("/v1/store/orders", `{"petId":3}`, "token")))
	})
}
