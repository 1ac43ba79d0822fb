package api_test

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
)

const rex = `{"name":"Rex","categoryId":7}`

// retried is a POST with an Idempotency-Key.
func retried(path, body, token string) call { return post(path, body, "Idempotency-Key", token) }

// wantReplay fails the test unless got is first again, and says so.
func wantReplay(t testing.TB, first, got response) {
	t.Helper()
	if got.header.Get("Idempotent-Replayed") != "true" || first.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("Idempotent-Replayed: got %q and then %q, want none and then true", first.header.Get("Idempotent-Replayed"), got.header.Get("Idempotent-Replayed"))
	}
	sent := func(h http.Header) http.Header {
		kept := maps.Clone(h)
		for name := range kept {
			if name == "Date" || name == "X-Request-Id" || name == "Idempotent-Replayed" || strings.HasPrefix(strings.ToLower(name), "x-ratelimit") {
				delete(kept, name)
			}
		}
		return kept
	}
	if got.status != first.status || string(got.body) != string(first.body) || fmt.Sprint(sent(got.header)) != fmt.Sprint(sent(first.header)) {
		t.Errorf("got %v %v\nwant %v %v", got, sent(got.header), first, sent(first.header))
	}
}

func (s *service) count(t testing.TB) (pets, orders int) {
	t.Helper()
	return len(s.do(t, call{path: "/v1/pets?limit=100"}).pets(t)), len(read[[]animalstore.Order](t, s.do(t, call{path: "/v1/store/orders?limit=100"}), 200))
}

func TestReplay(t *testing.T) {
	s := start(t)
	t.Run("pet", func(t *testing.T) {
		body := `{ "name" : "<Zoë> & 'Rex' \u2028 🦊", "categoryId" : 7 , "status":"pending"}`
		first := s.do(t, retried("/v1/pets", body, "a"))
		first.want(t, 201, "")
		wantReplay(t, first, s.do(t, retried("/v1/pets", body, "a")))
		path := first.header.Get("Location")
		s.do(t, patch(path, `{"name":"Max","status":"sold"}`)).want(t, 200, "")
		wantReplay(t, first, s.do(t, retried("/v1/pets", body, "a")))
		s.do(t, remove(path)).want(t, 204, "")
		wantReplay(t, first, s.do(t, retried("/v1/pets", body, "a")))
		s.do(t, call{path: path}).want(t, 404, animalstore.PetNotFound)
	})
	t.Run("order", func(t *testing.T) {
		body := fmt.Sprintf(`{"petId":%d}`, s.addOne(t, "available").ID)
		first := s.do(t, retried("/v1/store/orders", body, "a"))
		first.want(t, 201, "")
		path := first.header.Get("Location")
		for _, step := range append([]animalstore.OrderStatus{""}, stepsTo["delivered"]...) {
			s.clock.advance(time.Minute)
			if step != "" {
				s.do(t, patch(path, fmt.Sprintf(`{"status":%q}`, step))).want(t, 200, "")
			}
			wantReplay(t, first, s.do(t, retried("/v1/store/orders", body, "a")))
		}
		s.do(t, remove(petPath(read[animalstore.Order](t, first, 201).PetID))).want(t, 204, "")
		wantReplay(t, first, s.do(t, retried("/v1/store/orders", body, "a")))
	})
	if pets, orders := s.count(t); pets != 0 || orders != 1 {
		t.Errorf("stored are %d pets and %d orders, want 0 and 1", pets, orders)
	}
}

func TestTokenGrammar(t *testing.T) {
	s := start(t)
	for name, token := range map[string]string{
		"one character": "a", "255": strings.Repeat("k", 255), "all that is visible": "!\"#$%&'()*+,-./0123456789:;<=>?@[\\]^_`{|}~",
	} {
		t.Run(name, func(t *testing.T) {
			first := s.do(t, retried("/v1/pets", rex, token))
			first.want(t, 201, "")
			wantReplay(t, first, s.do(t, retried("/v1/pets", rex, token)))
		})
	}
	before, _ := s.count(t)
	for name, values := range map[string][]string{
		"empty": {""}, "256": {strings.Repeat("k", 256)}, "a space": {"a b"}, "a tab": {"a\tb"}, "not ASCII": {"é"}, "given twice": {"a", "b"}, "the same twice": {"a", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, c := range []call{post("/v1/pets", rex), post("/v1/store/orders", `{"petId":1}`)} {
				c.header["Idempotency-Key"] = values
				got := s.do(t, bad(c))
				got.want(t, 400, animalstore.InvalidParameter)
			}
		})
	}
	if after, orders := s.count(t); after != before || orders != 0 {
		t.Errorf("stored are %d pets and %d orders, want %d and 0", after, orders, before)
	}
}

// TestFailuresAreNotStored: what did not work can be tried again under its key.
func TestFailuresAreNotStored(t *testing.T) {
	s := start(t)
	s.do(t, bad(retried("/v1/pets", `{"name":"","categoryId":7}`, "a"))).want(t, 400, animalstore.ValidationFailed)
	s.db.arm("CreatePet", failWith(db.ErrFull))
	s.do(t, retried("/v1/pets", rex, "a")).want(t, 503, animalstore.StorageFull)
	s.db.arm("CreatePet", nil)
	first := s.do(t, retried("/v1/pets", rex, "a"))
	first.want(t, 201, "")
	wantReplay(t, first, s.do(t, retried("/v1/pets", rex, "a")))

	pet := read[animalstore.Pet](t, first, 201)
	body := fmt.Sprintf(`{"petId":%d}`, pet.ID)
	s.do(t, patch(petPath(pet.ID), `{"status":"pending"}`)).want(t, 200, "")
	for range 2 {
		s.do(t, retried("/v1/store/orders", body, "a")).want(t, 409, animalstore.PetNotAvailable)
	}
	s.do(t, patch(petPath(pet.ID), `{"status":"available"}`)).want(t, 200, "")
	order := s.do(t, retried("/v1/store/orders", body, "a"))
	order.want(t, 201, "")
	wantReplay(t, order, s.do(t, retried("/v1/store/orders", body, "a")))

	// The pet that an order wants may come later.
	later := fmt.Sprintf(`{"petId":%d}`, pet.ID+1)
	s.do(t, retried("/v1/store/orders", later, "b")).want(t, 404, animalstore.PetNotFound)
	s.addOne(t, "available")
	s.do(t, retried("/v1/store/orders", later, "b")).want(t, 201, "")
}

func TestOtherMethodsTakeNoToken(t *testing.T) {
	s := start(t)
	pet := s.addOne(t, "available")
	for range 2 {
		for _, c := range []call{
			patch(petPath(pet.ID), `{"name":"Max"}`, "Idempotency-Key", "a"),
			put("/v1/categories/7", `{"name":"cats"}`, "Idempotency-Key", "a"),
			with(call{path: "/v1/pets"}, "Idempotency-Key", "a b"),
		} {
			if got := s.do(t, c); got.status != 200 || got.header.Get("Idempotent-Replayed") != "" {
				t.Errorf("%s: got %v, want 200 and no replay", c.method, got)
			}
		}
	}
}
