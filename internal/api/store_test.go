package api_test

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

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

// stepsTo are the statuses a new order passes through to reach a status.
var stepsTo = map[animalstore.OrderStatus][]animalstore.OrderStatus{
	"placed":    nil,
	"approved":  {"approved"},
	"delivered": {"approved", "delivered"},
	"cancelled": {"cancelled"},
}

func TestPatchPet(t *testing.T) {
	s := start(t)
	for _, test := range []struct {
		name, body string
		want       animalstore.Pet // without its id
	}{
		{"category", `{"categoryId":-9223372036854775808}`, animalstore.Pet{Name: "Rex", CategoryID: -1 << 63, Status: "available"}},
		{"all", `{"status":"sold","categoryId":0,"name":"Max"}`, animalstore.Pet{Name: "Max", CategoryID: 0, Status: "sold"}},
		{"unknown fields", `{"id":99,"Name":"never","tags":[null],"status":"pending"}`, animalstore.Pet{Name: "Rex", CategoryID: 7, Status: "pending"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := petPath(s.addOne(t, "available").ID)
			got := s.do(t, patch(path, test.body))
			pet := read[animalstore.Pet](t, got, 200)
			if test.want.ID = pet.ID; pet != test.want {
				t.Errorf("got %+v, want %+v", pet, test.want)
			}
			if again := s.do(t, call{path: path}); string(again.body) != string(got.body) {
				t.Errorf("read %v, want %v", again, got)
			}
		})
	}
}

func categoryPath(id any) string { return fmt.Sprint("/v1/categories/", id) }

func TestPutCategory(t *testing.T) {
	s := start(t)
	s.do(t, call{path: categoryPath(7)}).want(t, 404, animalstore.CategoryNotFound)
	first := s.do(t, put(categoryPath(7), `{"name":"cats","id":9,"x":1}`))
	first.want(t, 201, "")
	if string(first.body) != `{"id":7,"name":"cats"}`+"\n" || first.header.Get("Location") != categoryPath(7) {
		t.Errorf("got %v at %q, want category 7", first, first.header.Get("Location"))
	}
	second := s.do(t, put(categoryPath(7), `{"name":"Katzen 🐈"}`))
	if second.want(t, 200, ""); second.header.Get("ETag") == first.header.Get("ETag") {
		t.Errorf("got ETag %s twice", second.header.Get("ETag"))
	}
	third := s.do(t, put(categoryPath(7), `{"name":"Katzen 🐈"}`))
	if third.want(t, 200, ""); third.header.Get("ETag") != second.header.Get("ETag") {
		t.Errorf("got ETag %s, want %s again", third.header.Get("ETag"), second.header.Get("ETag"))
	}
	s.createPet(t, "Rex") // of category 7, which keeps its name
	s.do(t, post("/v1/pets", `{"name":"Mia","categoryId":9}`)).want(t, 201, "")
	s.do(t, put(categoryPath(8), `{"name":"`+strings.Repeat("🐈", 1024)+`"}`)).want(t, 201, "")
	for id, name := range map[int64]string{7: "Katzen 🐈", 9: ""} {
		if got := read[animalstore.Category](t, s.do(t, call{path: categoryPath(id)}), 200); got.Name != name {
			t.Errorf("got %+v, want the name %q", got, name)
		}
	}
}

func TestCategoryIDs(t *testing.T) {
	s := start(t)
	var want []animalstore.Category
	for _, id := range []int64{math.MaxInt64, 3, -1, 0, math.MinInt64, 1<<53 + 1, 1 << 53, -40, 40} {
		c := animalstore.Category{ID: id, Name: fmt.Sprint("number ", id)}
		s.do(t, put(categoryPath(id), fmt.Sprintf(`{"name":%q}`, c.Name))).want(t, 201, "")
		if got := read[animalstore.Category](t, s.do(t, call{path: categoryPath(id)}), 200); got != c {
			t.Errorf("got %+v, want %+v", got, c)
		}
		want = append(want, c)
	}
	slices.SortFunc(want, func(a, b animalstore.Category) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
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
	if listed := s.do(t, call{path: fmt.Sprint("/v1/store/orders?petId=", pet.ID)}); string(listed.body) != "["+want+"]\n" {
		t.Errorf("listed %v, want %s", listed, want)
	}
	for _, id := range []string{"999999", "0", "-1"} {
		s.do(t, bad(post("/v1/store/orders", `{"petId":`+id+`}`))).want(t, 404, animalstore.PetNotFound)
	}
}

// TestOrderTexts: the texts of an order are set, found, changed and removed, whatever its
// status is, and an unchanged order stays as it was.
func TestOrderTexts(t *testing.T) {
	s := start(t)
	delivered := s.order(t, s.addOne(t, "available").ID, stepsTo["delivered"]...)
	path := orderPath(delivered.ID)
	for _, step := range []struct {
		patch, reference, note string
		changed                bool
	}{
		{`{"reference":"A | 1","note":"left\near"}`, `"A | 1"`, `"left\near"`, true},
		{`{"note":"left\near","x":1}`, `"A | 1"`, `"left\near"`, false},
		{`{"note":null}`, `"A | 1"`, `null`, true},
		{`{"note":null}`, `"A | 1"`, `null`, false},
	} {
		before := s.do(t, call{path: path}).header.Get("ETag")
		s.clock.advance(time.Second)
		got := s.do(t, patch(path, step.patch))
		read[animalstore.Order](t, got, 200)
		if want := fmt.Sprintf(`"status":"delivered","reference":%s,"note":%s,"createdAt"`, step.reference, step.note); !strings.Contains(string(got.body), want) {
			t.Errorf("PATCH %s: got %v, want %s", step.patch, got, want)
		}
		if changed := got.header.Get("ETag") != before; changed != step.changed {
			t.Errorf("PATCH %s: it changed: %t, want %t", step.patch, changed, step.changed)
		}
	}
	other := s.order(t, s.addOne(t, "available").ID)
	for query, want := range map[string][]int64{"reference=A+%7C+1": {delivered.ID}, "reference=a+%7C+1": {}, "status=delivered,placed&sort=oldest": {delivered.ID, other.ID}} {
		if got := idsIn(t, s.do(t, call{path: "/v1/store/orders?" + query})); !slices.Equal(got, want) {
			t.Errorf("%s: got orders %d, want %d", query, got, want)
		}
	}
}

// TestRefusals: what is refused has its code and changes nothing.
// Pet 1 is available, 2 sold, 3 ordered by order 1; order 2 is delivered.
func TestRefusals(t *testing.T) {
	s := start(t)
	s.addOne(t, "available")
	s.addOne(t, "sold")
	s.order(t, s.addOne(t, "available").ID)
	s.order(t, s.addOne(t, "available").ID, stepsTo["delivered"]...)
	s.do(t, retried("/v1/pets", rex, "used")).want(t, 201, "")
	s.do(t, retried("/v1/store/orders", `{"petId":5}`, "used")).want(t, 201, "")
	const pet, order, category = "/v1/pets/1", "/v1/store/orders/1", "/v1/categories/7"
	tests := []struct {
		name string
		call call
		want int
		code animalstore.Code
	}{
		{"PATCH pet: empty name", patch(pet, `{"name":""}`), 400, "validation_failed"},
		{"PATCH pet: no category", patch(pet, `{"categoryId":null}`), 400, "validation_failed"},
		{"PATCH pet: no body", patch(pet, ``), 400, "malformed_json"},
		{"PATCH pet: sold", patch("/v1/pets/2", `{"status":"pending"}`), 409, "invalid_transition"},
		{"PATCH pet: ordered", patch("/v1/pets/3", `{"status":"sold"}`), 409, "invalid_transition"},
		{"DELETE pet: ordered", remove("/v1/pets/3"), 409, "invalid_transition"},

		{"POST order: no pet named", post("/v1/store/orders", `{}`), 400, "validation_failed"},
		{"POST order: none", post("/v1/store/orders", `{"petId":99}`), 404, "pet_not_found"},
		{"POST order: sold", post("/v1/store/orders", `{"petId":2}`), 409, "pet_not_available"},
		{"POST order: another body", retried("/v1/store/orders", `{"petId":1}`, "used"), 422, "idempotency_key_reused"},
		{"POST pet: another body", retried("/v1/pets", `{"name":"Max","categoryId":7}`, "used"), 422, "idempotency_key_reused"},
		{"PATCH order: nothing", patch(order, `{}`), 400, "validation_failed"},
		{"POST order: a long reference", post("/v1/store/orders", `{"petId":1,"reference":"`+strings.Repeat("x", 101)+`"}`), 400, "validation_failed"},
		{"PATCH order: a long note", patch(order, `{"status":"approved","note":"`+strings.Repeat("x", 1001)+`"}`), 400, "validation_failed"},
		{"PATCH order: too far", patch(order, `{"status":"delivered"}`), 409, "invalid_transition"},
		{"PATCH order: over", patch("/v1/store/orders/2", `{"status":"cancelled"}`), 409, "invalid_transition"},

		{"PUT category: no name", put(category, `{}`), 400, "validation_failed"},
		{"PUT category: empty", put(category, `{"name":""}`), 400, "validation_failed"},
	}
	before := s.snapshot(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := s.do(t, bad(test.call))
			got.want(t, test.want, test.code)
		})
	}
	if after := s.snapshot(t); after != before {
		t.Errorf("what was refused changed something:\nbefore %s\nafter  %s", before, after)
	}
}

// snapshot returns every pet, order and category as listed.
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
	t.Parallel()
	s := start(t)
	s.addOne(t, "sold")                        // 1
	s.order(t, s.addOne(t, "available").ID)    // order 1 on pet 2
	s.do(t, retried("/v1/pets", rex, "token")) // 3
	first := s.do(t, retried("/v1/store/orders", `{"petId":3}`, "token"))
	s.do(t, patch(orderPath(2), `{"status":"cancelled"}`)).want(t, 200, "")
	s.do(t, remove(petPath(3))).want(t, 204, "")
	_, revoked := s.adminKey(t)
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
		{"grace period before a key that doesn't exist", post("/v1/keys/99/rotate", `{"graceSeconds":-1}`), 400, "validation_failed"},
		{"query before a key that doesn't exist", call{path: "/v1/keys/99/usage?hours=0"}, 400, "invalid_parameter"},
		{"content before an absent pet", patch("/v1/pets/99", `{"name":""}`, "If-Match", `"x"`), 400, "validation_failed"},
		{"absence before condition", patch("/v1/pets/99", `{}`, "If-Match", `"x"`), 404, "pet_not_found"},
		{"absence before condition, removing", remove("/v1/pets/99", "If-Match", `"x"`), 404, "pet_not_found"},
		{"condition before state", patch("/v1/pets/1", `{"status":"available"}`, "If-Match", `"x"`), 412, "precondition_failed"},
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
