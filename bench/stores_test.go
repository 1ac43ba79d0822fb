package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
)

func TestMixKeepsShares(t *testing.T) {
	count := map[string]int{}
	for _, request := range mix(part{9, []string{"a"}}, part{1, []string{"b"}}) {
		count[request]++
	}
	if want := (map[string]int{"a": pool * 9 / 10, "b": pool / 10}); !reflect.DeepEqual(count, want) {
		t.Errorf("mix of 9 to 1: got %v, want %v", count, want)
	}
	for _, request := range ninetyTen(pocketBaseAPI, 1000) {
		if strings.HasPrefix(request, "POST") {
			count["POST"]++
		}
	}
	if got, want := count["POST"], pool/10; got != want {
		t.Errorf("creates in the mix: got %d of %d, want %d", got, pool, want)
	}
}

// A store with history has the events and keys that requests expect.
func TestHistory(t *testing.T) {
	const n = 1000
	b := testBench(t)
	file := filepath.Join(b.work, "store.db")
	b.seed("sqlite:"+file, n, true)
	b.addHistory(file)
	store := b.openStore("sqlite:" + file)
	defer store.Close()
	first, newest, err := store.EventRange(t.Context())
	if err != nil || first != 0 || newest != 2*n {
		t.Errorf("range of events: got %d to %d, %v; want 0 to %d", first, newest, err, 2*n)
	}
	events, _, err := store.Events(t.Context(), db.EventQuery{After: 2*n - 20, Limit: 100})
	if err != nil || len(events) != 20 {
		t.Fatalf("the feed's end: got %d events, %v; want 20", len(events), err)
	}
	last, pet := events[19], must(store.Pet(t.Context(), n))
	if last.Type != animalstore.PetUpdated || last.Subject != "pet/1000" || !strings.Contains(string(last.Data), pet.Name) {
		t.Errorf("the last event: got %+v, want an update of %+v", last, pet)
	}
	if _, err := store.DropEvents(t.Context(), animalstore.At(time.Now()), n); err != nil {
		t.Fatal(err)
	}
	if first, _, err := store.EventRange(t.Context()); first != 0 {
		t.Errorf("the server would drop events up to %d, %v", first, err)
	}
	keys, err := store.Keys(t.Context(), db.KeyQuery{Limit: 100})
	if err != nil || len(keys) != n/50 {
		t.Errorf("got %d keys, %v; want %d", len(keys), err, n/50)
	}
}

func TestListRequests(t *testing.T) {
	for _, c := range []struct {
		name string
		api  api
		page page
		want string
	}{
		{"ours, first", ourAPI, page{limit: 20}, "/v1/pets"},
		{"ours, status", ourAPI, page{limit: 100, status: rareStatus}, "/v1/pets?limit=100&status=pending"},
		{"ours, cursor", ourAPI, page{below: 77, limit: 20}, cursorURI(77, "")},
		{"plain, cursor", plainAPI, page{below: 77, limit: 20}, "/v1/pets?limit=20&cursor=Nzc"},
		{"pocketbase, first", pocketBaseAPI, page{limit: 20}, "/api/collections/pets/records?perPage=20&skipTotal=1&sort=-created"},
		{"pocketbase, cursor", pocketBaseAPI, page{below: 1500, limit: 20},
			"/api/collections/pets/records?perPage=20&skipTotal=1&sort=-created&filter=created%3C%222025-01-01+00%3A00%3A01.500Z%22"},
	} {
		if got := c.api.list(c.page); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

// Stores are the same each time; otherwise a cached store wouldn't match the requests.
func TestStoresAreTheSameEachTime(t *testing.T) {
	collect := func(n int) (pets []animalstore.Pet) {
		for part := range parts(n) {
			pets = append(pets, part.Pets...)
		}
		return pets
	}
	const n = 25_000
	pets := collect(n)
	if !slices.Equal(pets, collect(n)) {
		t.Error("two stores of one size differ")
	}
	if len(pets) != n || pets[0].ID != 1 || pets[n-1].ID != n {
		t.Errorf("got %d pets, ids from %d to %d; want %d, ids from 1", len(pets), pets[0].ID, pets[n-1].ID, n)
	}
	var text bytes.Buffer
	if err := writeRows(&text, n); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(text.String(), "\n")
	if want := fmt.Sprintf("%s\t%d\t%s", pets[n-1].Name, pets[n-1].CategoryID, pets[n-1].Status); len(lines) != n+1 || lines[n-1] != want {
		t.Errorf("rows for peers: got %d lines, line %d is %q; want %d and %q", len(lines)-1, n, lines[n-1], n, want)
	}
}

// Each tenth of a store has pages of the rare status; otherwise pages from random
// places wouldn't be full.
func TestRareIsScattered(t *testing.T) {
	const n = fewPets
	var rare [10]int
	for part := range parts(n) {
		for _, p := range part.Pets {
			if p.Status == rareStatus {
				rare[int(p.ID-1)*10/n]++
			}
		}
	}
	for tenth, got := range rare {
		if got < 50 || got > 200 {
			t.Errorf("tenth %d: got %d pets of the rare status, want about 100", tenth, got)
		}
	}
}

func TestCached(t *testing.T) {
	b := &bench{options: options{dir: t.TempDir()}}
	failed := errors.New("no")
	fill := func(err error) func(string) {
		return func(part string) { check(errors.Join(os.WriteFile(part, []byte("kept"), 0o600), err)) }
	}
	if err := attempt(func() { b.cached("thing", fill(failed)) }); !errors.Is(err, failed) {
		t.Fatalf("got %v, want %v", err, failed)
	}
	path := b.cached("thing", fill(nil)) // tried again after the failure
	again := b.cached("thing", fill(failed))
	if text, err := os.ReadFile(again); err != nil || again != path || string(text) != "kept" {
		t.Errorf("the second time: got %q in %s, %v; want what is cached in %s", text, again, err, path)
	}
}
