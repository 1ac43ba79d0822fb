package conformance

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"sync"
	"syscall"
	"testing"

	"animalstore"
	"animalstore/client"
)

// TestWalk makes the same walk through the API of a real server with every client.
func TestWalk(t *testing.T) {
	for _, c := range clients {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			runWalk(t, c.start(t))
		})
	}
}

// runWalk makes the walk with one client.
func runWalk(t *testing.T, a *adapter) {
	walk := loadWalk(t)
	server := startReal(t)
	o := walk.steps(t, a, places{"server": server.url})
	for _, wrong := range walk.check(o) {
		t.Error(wrong)
	}
}

func loadWalk(t testing.TB) *scenario {
	t.Helper()
	text, err := os.ReadFile("testdata/walk.json")
	if err != nil {
		t.Fatal(err)
	}
	walk := &scenario{Client: map[string]any{"apiKey": ownerKey}}
	if err := decodeStrictly(text, &walk.Steps); err != nil {
		t.Fatal(err)
	}
	return walk
}

// missingOperations aren't in the clients.
var missingOperations = map[string]string{
	"receiveEvent": "the service calls it",
}

// TestWalkIsComplete: the walk calls every operation of the OpenAPI document, so that no
// client lacks one.
func TestWalkIsComplete(t *testing.T) {
	document, err := os.ReadFile("../../openapi/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	called := map[string]bool{}
	for _, step := range loadWalk(t).Steps {
		called[step.Call] = true
	}
	for _, m := range regexp.MustCompile(`(?m)^ +operationId: (\w+)$`).FindAllStringSubmatch(string(document), -1) {
		if _, missing := missingOperations[m[1]]; called[m[1]] == missing {
			t.Errorf("%s: called in the walk: %t, listed as missing: %t, want one of both", m[1], called[m[1]], missing)
		}
	}
}

// TestFollowers: a follower in each language builds a copy of the pets over 20 restarts
// of the server. It gets every event once and in order, and the copy is equal.
func TestFollowers(t *testing.T) {
	t.Parallel()
	const restarts = 20
	server := startReal(t)
	type result struct {
		events []any
		err    any
	}
	results := make([]result, len(clients))
	const changes = 10 * restarts
	var following sync.WaitGroup
	for i, c := range clients {
		a, key := c.start(t), server.newKey(c.name, 1_000_000)
		id := fmt.Sprintf("follower %d", clientNumber.Add(1))
		following.Go(func() {
			_, err := a.do(command{Client: id, Call: "new", Args: map[string]any{"baseURL": server.url, "apiKey": key, "backoffBase": 20, "backoffMax": 100}})
			if err != nil {
				results[i].err = err
				return
			}
			args := map[string]any{"events": map[string]any{"types": []string{"pet.*"}}}
			reply, err := a.do(command{Client: id, Call: "events", Args: args, Options: map[string]any{"take": changes, "timeout": 170_000}})
			results[i].events, _ = reply["result"].([]any)
			if results[i].err = err; err == nil {
				results[i].err = reply["error"]
			}
		})
	}
	c := server.owner()
	for n := range restarts {
		changePets(t, c, 10, n)
		server.restart([]syscall.Signal{syscall.SIGTERM, syscall.SIGKILL}[n%2])
	}
	following.Wait()
	want, pets := storeContents(t, c)
	for i, r := range results {
		if r.err != nil {
			t.Errorf("%s: %s", clients[i].name, show(r.err))
		}
		ids, copied := copyOf(t, r.events)
		if !slices.Equal(ids, want) {
			t.Errorf("%s: got events %v, want %v", clients[i].name, ids, want)
		}
		if !maps.Equal(copied, pets) {
			t.Errorf("%s: got the copy %v, want %v", clients[i].name, copied, pets)
		}
	}
}

// changePets makes n changes: it adds, changes and removes pets.
func changePets(t testing.TB, c *client.Client, n, round int) {
	t.Helper()
	var last animalstore.Pet
	for i := range n {
		var err error
		switch {
		case i%5 == 3:
			last, err = c.UpdatePet(t.Context(), last.ID, animalstore.PetPatch{Name: new(last.Name + " II")})
		case i%5 == 4:
			err = c.DeletePet(t.Context(), last.ID)
		default:
			last, err = c.CreatePet(t.Context(), animalstore.NewPet{Name: fmt.Sprintf("pet %d of round %d", i, round), CategoryID: 1})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// storeContents returns the ids of the events of pets, and the pets by id.
func storeContents(t testing.TB, c *client.Client) (events []int64, pets map[int64]animalstore.Pet) {
	t.Helper()
	for e, err := range c.ListEvents(t.Context(), client.EventsOptions{Types: "pet.*"}) {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e.ID)
	}
	pets = map[int64]animalstore.Pet{}
	for p, err := range c.ListPets(t.Context(), client.PetQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		pets[p.ID] = p
	}
	return events, pets
}

// copyOf builds a copy of the pets from events, and returns it with the events' ids.
func copyOf(t testing.TB, events []any) (ids []int64, pets map[int64]animalstore.Pet) {
	t.Helper()
	text, err := json.Marshal(events)
	if err != nil {
		t.Fatal(err)
	}
	var decoded []struct {
		ID   int64
		Type string
		Data animalstore.Pet
	}
	if err := json.Unmarshal(text, &decoded); err != nil {
		t.Fatal(err)
	}
	pets = map[int64]animalstore.Pet{}
	for _, e := range decoded {
		ids = append(ids, e.ID)
		pets[e.Data.ID] = e.Data
		if e.Type == "pet.deleted" {
			delete(pets, e.Data.ID)
		}
	}
	return ids, pets
}
