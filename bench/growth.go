package main

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"

	"animalstore"
	"animalstore/internal/sample"
)

const (
	fewPets  = 100_000
	manyPets = 5_000_000
	// scattered is the number of places that are read. They lie on many more pages than
	// SQLite keeps in memory, so no read benefits from an earlier one.
	scattered = 30_000
)

var growthWorkloads = []workload{
	{"cursor", "list 20, random cursor", connections, func(a api, pets int) []string { return randomPages(a, pets, places(pets)) }},
	{"rare", "list 20 of a rare status, random cursor", connections, func(a api, pets int) []string {
		return randomReads(places(pets), func(random *rand.Rand) string {
			// The lowest tenth alone has more than a page of these pets.
			return a.list(page{below: int64(pets)/10 + random.Int64N(int64(pets)*9/10), limit: 20, status: rareStatus})
		})
	}},
	{"name", "20 pets by name, random place", connections, func(_ api, pets int) []string { return randomNames(pets, "", "") }},
	{"half", "20 pets by what half of the names begin with", connections, func(_ api, pets int) []string { return randomNames(pets, half, "") }},
	{"none", "the same, of a status that none of them has", connections, func(_ api, pets int) []string { return randomNames(pets, half, rareStatus) }},
	{"one", "one pet, random id", connections, func(a api, pets int) []string { return randomSingles(a, pets, places(pets)) }},
	{"feed", "20 events, random place", connections, func(_ api, pets int) []string {
		return randomReads(places(pets), func(random *rand.Rand) string { return fmt.Sprintf("/v1/events?after=%d", random.IntN(2*pets)) })
	}},
	{"end", "20 events, the feed's end", connections, func(_ api, pets int) []string {
		return []string{fmt.Sprintf("GET /v1/events?after=%d", 2*pets-20)}
	}},
	{"subject", "events of a random pet", connections, func(_ api, pets int) []string {
		return randomReads(places(pets), func(random *rand.Rand) string { return fmt.Sprintf("/v1/events?subject=pet/%d", 1+random.IntN(pets)) })
	}},
}

// places is how many places are read in a store.
func places(pets int) int { return min(scattered, pets/3) }

// randomNames are pages of pets whose names begin with prefix, from random places. Without
// a prefix, each is for the first letter of the name that it begins at: there are fewer
// pets with one name in the small store than fit on a page.
func randomNames(pets int, prefix string, status animalstore.PetStatus) []string {
	var names []string
	for batch := range (sample.Store{Seed: 3, Pets: 1000}).Batches() {
		for _, p := range batch.Pets {
			names = append(names, p.Name)
		}
	}
	return randomReads(places(pets), func(random *rand.Rand) string {
		name := names[random.IntN(len(names))]
		filters := url.Values{"name": {name[:1]}}
		if prefix != "" {
			name = prefix + name
			filters.Set("name", prefix)
		}
		if status != "" {
			filters.Set("status", string(status))
		}
		return nameURI(1+random.Int64N(int64(pets)), name, filters)
	})
}

// historyWork are the workloads that read events, which only SQLite's stores have here.
var historyWork = strings.Fields("feed end subject")

func growth(r *report) {
	r.prepare()
	for _, engine := range r.engines {
		r.measureGrowth(engine, r.workloads)
	}
}

// measureGrowth compares reads in a large store with reads in a small one.
func (r *report) measureGrowth(engine string, workloads []string) {
	stores, suffix := []*server{}, ""
	if engine == onPostgres {
		suffix = ", PostgreSQL"
	}
	for _, pets := range []int{r.few, r.many} {
		s, database := r.grownStore(engine, pets)
		store := r.startBuild(s, r.release, database)
		checkCursors(store)
		stores = append(stores, store)
		defer store.stop()
	}
	for _, w := range growthWorkloads {
		if !slices.Contains(workloads, w.name) || engine == onPostgres && slices.Contains(historyWork, w.name) {
			continue
		}
		results := r.race(w, stores...)
		compare := func(name string, of func(turn) float64) {
			r.costs = append(r.costs, cost{fmt.Sprintf("%s, %s pets%s: %s", w.title, grouped(r.many), suffix, name), grouped(r.few) + " pets",
				figures(results[0].turns, of), figures(results[1].turns, of), barFor("growth", w.name, "small")})
		}
		compare("CPU µs per request", turn.cpuMicros)
		compare("µs from response to response", turn.micros)
	}
}

// grownStore describes the server of a store with this many pets, and returns the URL of
// its database.
func (b *bench) grownStore(engine string, pets int) (s server, database string) {
	name := fmt.Sprintf("pets-%d", pets)
	if engine == onSQLite {
		database = "sqlite:" + b.seededFile(pets, true)
		return b.withKeys(name, database, pets, 1), database
	}
	cluster, database := findPostgres(b).runSeeded(pets, true)
	s = b.withKeys(name, database, pets, 1)
	s.backends = []*process{cluster}
	return s, database
}
