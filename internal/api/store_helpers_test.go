package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"testing"

	"animalstore"
)

// often returns the larger count if ANIMALSTORE_SOAK=1 is set.
func often(usually, soaking int) int {
	if os.Getenv("ANIMALSTORE_SOAK") != "" {
		return soaking
	}
	return usually
}

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

// with adds headers, given as name and value in turn.
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

// pet reads a pet from the database.
func (s *service) pet(t testing.TB, id int64) animalstore.Pet {
	t.Helper()
	pet, err := s.db.DB.Pet(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return pet
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
