package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// order is an order as a client sees it.
type order struct {
	ID     int64  `json:"id"`
	PetID  int64  `json:"petId"`
	Status string `json:"status"`
}

// intent is a write that its client retries until it has the response.
type intent struct {
	path, body, token string
	responses         []response // all it ever got
}

// TestRetryAfterKill: clients send pets and orders, each with an
// Idempotency-Key, while the server is killed. Clients without a response
// send it again to the next server. In the end each write was done once, and all
// responses to it are the same.
func TestRetryAfterKill(t *testing.T) {
	t.Parallel()
	rounds := 6
	if soak {
		rounds = 300
	}
	database := newDatabase(t)
	key := loadKey(t, database)
	var all []*intent
	replays, unheard := 0, 0
	for round := range rounds {
		s := start(t, onDatabase(database))
		intents := newIntents(t, newClient(t, s, key), round)
		var answered atomic.Int64
		done := make(chan struct{})
		go func() {
			defer close(done)
			sendAll(t, s, key, intents, &answered)
		}()
		// Kill at another moment of the work in each round.
		enough := int64(len(intents) * (1 + round%4) / 5)
		eventually(t, time.Minute, "some writes are answered", func() bool { return answered.Load() >= enough })
		s.kill()
		<-done
		if answered.Load() == int64(len(intents)) {
			t.Logf("round %d: all was answered before the kill", round)
		}

		// Everybody sends again, several times at once: also those that have an
		// response, which a lost connection might have kept from them.
		s = start(t, onDatabase(database))
		for range 2 {
			sendAll(t, s, key, intents, &answered)
		}
		again, lost := checkIntents(t, intents)
		replays, unheard = replays+again, unheard+lost
		all = append(all, intents...)
		s.kill()
	}
	if replays == 0 {
		t.Error("no write was replayed: the test proves nothing")
	}
	s := start(t, onDatabase(database))
	checkStored(t, newClient(t, s, key), all)
	t.Logf("%d kills, %d writes, %d responses replayed; of %d the first response was never heard", 2*rounds, len(all), replays, unheard)
	s.stop()
	if got := integrity(t, database); got != "ok" {
		t.Errorf("the file is damaged: %s", got)
	}
}

// TestRetryOneKeyAfterKill: the server is killed under two hundred requests with
// one Idempotency-Key, which are then sent again.
func TestRetryOneKeyAfterKill(t *testing.T) {
	t.Parallel()
	rounds := 4
	if soak {
		rounds = 200
	}
	database := newDatabase(t)
	key := loadKey(t, database)
	for round := range rounds {
		s := start(t, onDatabase(database))
		ordered, err := decodePet(newClient(t, s, key).do(t, "POST", "/v1/pets", newPetBody("to be ordered", 7, "available")).body)
		if err != nil {
			t.Fatal(err)
		}
		in := &intent{path: "/v1/pets", body: newPetBody(fmt.Sprint("wanted in round ", round), 7, "available"), token: fmt.Sprint("round-", round)}
		if round%2 == 1 {
			in.path, in.body = "/v1/store/orders", fmt.Sprintf(`{"petId":%d}`, ordered.ID)
		}
		same := slices.Repeat([]*intent{in}, 200)
		var answered atomic.Int64
		done := make(chan struct{})
		go func() {
			defer close(done)
			sendAtOnce(t, s, key, same, &answered)
		}()
		eventually(t, time.Minute, "one is answered", func() bool { return answered.Load() > 0 })
		s.kill()
		<-done
		before := len(in.responses)
		s = start(t, onDatabase(database))
		sendAtOnce(t, s, key, same, &answered)
		if len(in.responses)-before != 200 {
			t.Errorf("round %d: got %d responses from the second server, want 200", round, len(in.responses)-before)
		}
		checkIntents(t, []*intent{in})
		checkStored(t, newClient(t, s, key), []*intent{in})
		s.kill()
		t.Logf("round %d: %d responses before the kill", round, before)
	}
}

// sendAtOnce sends all writes at the same time, each on its own connection.
func sendAtOnce(t *testing.T, s *server, key string, intents []*intent, answered *atomic.Int64) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	for _, in := range intents {
		c := newClient(t, s, key)
		wg.Go(func() {
			a, err := c.try("POST", in.path, in.body, "Idempotency-Key", in.token)
			if err != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			in.responses = append(in.responses, a)
			answered.Add(1)
		})
	}
	wg.Wait()
}

// newIntents returns writes of new pets, and of orders for existing pets.
func newIntents(t *testing.T, c *client, round int) (intents []*intent) {
	t.Helper()
	for i := range 60 {
		in := &intent{path: "/v1/pets", body: newPetBody(fmt.Sprintf("wanted %d in round %d", i, round), 7, "available"), token: fmt.Sprintf("%d-%d", round, i)}
		if i%2 == 0 {
			a := c.do(t, "POST", "/v1/pets", newPetBody("to be ordered", 7, "available"))
			wantStatus(t, a, 201, "")
			p, err := decodePet(a.body)
			if err != nil {
				t.Fatal(err)
			}
			in.path, in.body = "/v1/store/orders", fmt.Sprintf(`{"petId":%d}`, p.ID)
		}
		intents = append(intents, in)
	}
	return intents
}

// sendAll sends each write twice at once, until the server is gone.
func sendAll(t *testing.T, s *server, key string, intents []*intent, answered *atomic.Int64) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	for i := range 12 {
		c := newClient(t, s, key)
		wg.Go(func() {
			for n := i / 2; n < len(intents); n += 6 { // two clients for each
				in := intents[n]
				a, err := c.try("POST", in.path, in.body, "Idempotency-Key", in.token)
				if err != nil {
					return // the server is gone: this one may be stored or not
				}
				mu.Lock()
				if in.responses = append(in.responses, a); len(in.responses) == 1 {
					answered.Add(1)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}

// checkIntents compares all responses to each write, and counts the replays, and
// the writes whose first response was lost with the server.
func checkIntents(t *testing.T, intents []*intent) (replays, unheard int) {
	t.Helper()
	for _, in := range intents {
		firsts := 0
		for _, a := range in.responses {
			if a.status != 201 || a.body != in.responses[0].body || a.header.Get("Location") != in.responses[0].header.Get("Location") {
				t.Fatalf("%s %s: got %d %s and %d %s, want them the same", in.path, in.body, a.status, a.body, in.responses[0].status, in.responses[0].body)
			}
			if a.header.Get("Idempotent-Replayed") == "" {
				firsts++
			}
		}
		if len(in.responses) < 4 || firsts > 1 {
			t.Fatalf("%s %s: got %d responses of which %d aren't replays, want at least 4 and at most 1", in.path, in.body, len(in.responses), firsts)
		}
		replays, unheard = replays+len(in.responses)-firsts, unheard+1-firsts
	}
	return replays, unheard
}

// checkStored compares what is stored with what was wanted: each once.
func checkStored(t *testing.T, c *client, intents []*intent) {
	t.Helper()
	names := map[string]int{}
	for _, p := range c.allPets(t, 0) {
		names[p.Name]++
	}
	orders := map[int64][]order{}
	for next := "/v1/store/orders?limit=100"; next != ""; {
		a := c.get(t, next)
		wantStatus(t, a, 200, "")
		var page []order
		if err := json.Unmarshal([]byte(a.body), &page); err != nil {
			t.Fatal(err)
		}
		for _, o := range page {
			orders[o.PetID] = append(orders[o.PetID], o)
		}
		next = nextPage(a.header)
	}
	for _, in := range intents {
		if in.path == "/v1/pets" {
			p, err := decodePet(in.responses[0].body)
			if err != nil || names[p.Name] != 1 {
				t.Errorf("%s: stored %d times, want once (%v)", in.body, names[p.Name], err)
			}
			continue
		}
		var o order
		if err := json.Unmarshal([]byte(in.responses[0].body), &o); err != nil {
			t.Fatal(err)
		}
		if got := orders[o.PetID]; !slices.Equal(got, []order{o}) {
			t.Errorf("%s: stored are %+v, want %+v alone", in.body, got, o)
		}
		a := c.get(t, fmt.Sprint("/v1/pets/", o.PetID))
		if p, err := decodePet(a.body); err != nil || p.Status != "pending" {
			t.Errorf("the ordered pet is %s, want it pending", a.body)
		}
	}
}
