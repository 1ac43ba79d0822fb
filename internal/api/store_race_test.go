package api_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"animalstore"
)

// atOnce sends n calls at the same time and returns the responses.
func (s *service) atOnce(t testing.TB, n int, c func(i int) call) []response {
	t.Helper()
	responses, gate := make([]response, n), make(chan struct{})
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			<-gate
			got, err := s.send(t.Context(), c(i))
			if err != nil {
				t.Error(err)
			}
			responses[i] = got
		})
	}
	close(gate)
	group.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return responses
}

// TestOneOrderWins: of a hundred orders for one pet at once, one gets it.
func TestOneOrderWins(t *testing.T) {
	s := start(t)
	quick := s.unchecked()
	for round := range often(8, 500) {
		pet := s.addOne(t, "available")
		responses := quick.atOnce(t, 100, func(int) call { return post("/v1/store/orders", fmt.Sprintf(`{"petId":%d}`, pet.ID)) })
		counts := map[string]int{}
		var won response
		for _, a := range responses {
			counts[fmt.Sprint(a.status, " ", a.code())]++
			if a.status == 201 {
				won = a
			}
		}
		if counts["201 "] != 1 || counts["409 pet_not_available"] != 99 {
			t.Fatalf("round %d: got %v, want one 201 and 99 times 409 pet_not_available", round, counts)
		}
		orders := read[[]animalstore.Order](t, s.do(t, call{path: fmt.Sprint("/v1/store/orders?petId=", pet.ID)}), 200)
		if want := read[animalstore.Order](t, won, 201); !slices.Equal(orders, []animalstore.Order{want}) {
			t.Fatalf("round %d: stored are %+v, want %+v alone", round, orders, want)
		}
		if got := read[animalstore.Pet](t, s.do(t, call{path: petPath(pet.ID)}), 200); got.Status != "pending" {
			t.Fatalf("round %d: the pet is %+v, want it pending", round, got)
		}
	}
}

// TestSentManyTimes: however often a POST with one Idempotency-Key is sent at
// once, it is done once and all get the same response.
func TestSentManyTimes(t *testing.T) {
	s := start(t)
	quick := s.unchecked()
	clients := 200
	if engine.name == "PostgreSQL" {
		clients = often(50, 200) // they wait for each other's locks, for 2.4 s at most
	}
	for round := range often(4, 200) {
		ordered := s.addOne(t, "available")
		for path, body := range map[string]string{"/v1/pets": rex, "/v1/store/orders": fmt.Sprintf(`{"petId":%d}`, ordered.ID)} {
			pets, orders := s.total(t)
			responses := quick.atOnce(t, clients, func(int) call { return retried(path, body, fmt.Sprint("round-", round)) })
			firsts := 0
			for _, a := range responses {
				if a.status != 201 || string(a.body) != string(responses[0].body) || a.header.Get("Etag") != responses[0].header.Get("Etag") || a.header.Get("Location") != responses[0].header.Get("Location") {
					t.Fatalf("round %d: got %v and %v, want them the same", round, a, responses[0])
				}
				if a.header.Get("Idempotent-Replayed") == "" {
					firsts++
				}
			}
			morePets, moreOrders := s.total(t)
			if got := morePets + moreOrders - pets - orders; got != 1 || firsts != 1 {
				t.Fatalf("round %d, %s: %d rows were added and %d responses aren't replays, want 1 and 1", round, path, got, firsts)
			}
		}
	}
}

// total counts all pets and orders by their highest ids: nothing is removed.
func (s *service) total(t testing.TB) (pets, orders int64) {
	t.Helper()
	if page := s.do(t, call{path: "/v1/pets?limit=1"}).pets(t); len(page) > 0 {
		pets = page[0].ID
	}
	if page := read[[]animalstore.Order](t, s.do(t, call{path: "/v1/store/orders?limit=1"}), 200); len(page) > 0 {
		orders = page[0].ID
	}
	return pets, orders
}

// TestNoLostUpdates: clients that read, change and write with If-Match never
// overwrite each other. Each adds its marks to one pet's name.
func TestNoLostUpdates(t *testing.T) {
	s := start(t)
	quick := s.unchecked()
	clients, each := 8, often(6, 25) // a name has room for 1024 characters
	for name, path := range map[string]string{"pet": petPath(s.addOne(t, "available").ID), "category": "/v1/categories/7"} {
		t.Run(name, func(t *testing.T) {
			method := map[string]string{"pet": "PATCH", "category": "PUT"}[name]
			s.do(t, call{method: method, path: path, body: `{"name":"x"}`}).want(t, 200, "")
			var refused, group = make([]int, clients), sync.WaitGroup{}
			for i := range clients {
				group.Go(func() {
					for n := range each {
						for done := false; !done; {
							var err error
							done, err = quick.append(t, method, path, fmt.Sprintf(" %c%d", 'a'+i, n))
							if err != nil || refused[i] > 1000*each {
								t.Errorf("after %d refusals: %v", refused[i], err)
								return
							}
							if !done {
								refused[i]++
							}
						}
					}
				})
			}
			group.Wait()
			got := read[animalstore.Category](t, s.do(t, call{path: path}), 200) // which has a name, too
			marks := strings.Fields(got.Name)
			for i := range clients {
				for n := range each {
					if mark := fmt.Sprintf("%c%d", 'a'+i, n); !slices.Contains(marks, mark) {
						t.Errorf("%s is lost", mark)
					}
				}
			}
			if len(marks) != 1+clients*each {
				t.Errorf("got %d marks, want %d: %q", len(marks)-1, clients*each, got.Name)
			}
			if slices.Max(refused) == 0 {
				t.Error("no request was refused: the clients never met")
			}
		})
	}
}

// append reads a name, adds a mark and writes it back, unless that is refused.
func (s *service) append(t testing.TB, method, path, mark string) (done bool, err error) {
	got, err := s.send(t.Context(), call{path: path})
	if err != nil {
		return false, err
	}
	var named struct{ Name string }
	if err := json.Unmarshal(got.body, &named); err != nil || got.status != 200 {
		return false, fmt.Errorf("got %v, want what it is: %v", got, err)
	}
	wrote, err := s.send(t.Context(), with(call{method: method, path: path, body: fmt.Sprintf(`{"name":%q}`, named.Name+mark)}, "If-Match", got.header.Get("Etag")))
	if err == nil && wrote.status != 200 && wrote.status != 412 {
		err = fmt.Errorf("got %v, want 200 or 412", wrote)
	}
	return wrote.status == 200, err
}
