package main

import (
	"encoding/json"
	"math/rand/v2"
	"slices"

	"animalstore"
	"animalstore/internal/sample"
)

const (
	// pool is the number of different cursors and ids: far more than any page
	// cache holds.
	pool        = 5000
	connections = 32
	newPet      = `{"name":"Rex the dog 4711","categoryId":7,"status":"available"}`
)

// workload is a kind of traffic that servers are measured under.
type workload struct {
	name        string // in bars and for -workloads
	title       string
	connections int
	requests    func(a api, pets int) []string // lines of "METHOD TARGET [BODY]"
}

var workloads = []workload{
	{"first", "list 20, first page", connections, firstPages},
	{"cursor", "list 20, random cursor", connections, cursorPages},
	{"status", "list 100 of a status", connections, statusPages},
	{"one", "list of one random id", connections, singles},
	{"create1", "durable create", 1, creates},
	{"create16", "durable create", 16, creates},
	{"create128", "durable create", 128, creates},
	{"mix", "mix: 90 % reads, 10 % creates", connections, ninetyTen},
}

// workloadNamed is one of workloads.
func workloadNamed(name string) workload {
	return workloads[slices.IndexFunc(workloads, func(w workload) bool { return w.name == name })]
}

func namesOf(workloads []workload) (names []string) {
	for _, w := range workloads {
		names = append(names, w.name)
	}
	return names
}

func firstPages(a api, _ int) []string { return []string{"GET " + a.list(page{limit: 20})} }

func statusPages(a api, _ int) []string {
	return []string{"GET " + a.list(page{limit: 100, status: animalstore.PetAvailable})}
}

func cursorPages(a api, pets int) []string { return randomPages(a, pets, min(pool, pets/20)) }

func randomPages(a api, pets, count int) []string {
	return randomReads(count, func(random *rand.Rand) string {
		// There are at least two more pages below it.
		return a.list(page{below: 50 + random.Int64N(int64(pets)-50), limit: 20})
	})
}

// singles read one pet at a time.
func singles(a api, pets int) []string { return randomSingles(a, pets, min(pool, pets/20)) }

func randomSingles(a api, pets, count int) []string {
	return randomReads(count, func(random *rand.Rand) string { return a.one(1 + random.Int64N(int64(pets))) })
}

// randomReads are GETs of random targets, the same ones each time.
func randomReads(count int, target func(*rand.Rand) string) []string {
	random := rand.New(rand.NewPCG(3, 4))
	requests := make([]string, count)
	for i := range requests {
		requests[i] = "GET " + target(random)
	}
	return requests
}

// creates add pets with names and categories as in a sample store.
func creates(a api, _ int) (requests []string) {
	for _, body := range createBodies() {
		requests = append(requests, "POST "+a.create+" "+body)
	}
	return requests
}

func createBodies() (bodies []string) {
	for batch := range (sample.Store{Seed: 2, Pets: pool}).Batches() {
		for _, p := range batch.Pets {
			body := must(json.Marshal(animalstore.NewPet{Name: p.Name, CategoryID: p.CategoryID, Status: animalstore.PetAvailable}))
			bodies = append(bodies, string(body))
		}
	}
	return bodies
}

// ninetyTen has nine reads for each create. Half of the reads are lists, both first
// pages and pages from random places, and half read one pet.
func ninetyTen(a api, pets int) []string {
	return mix(part{9, firstPages(a, pets)}, part{9, cursorPages(a, pets)}, part{18, singles(a, pets)}, part{4, creates(a, pets)})
}

// part is a kind of request and its share of a mix.
type part struct {
	share    int
	requests []string
}

// mix shuffles parts by their shares, the same way each time.
func mix(parts ...part) []string {
	var cycle []int
	for i, p := range parts {
		cycle = append(cycle, slices.Repeat([]int{i}, p.share)...)
	}
	random := rand.New(rand.NewPCG(7, 8))
	var requests []string
	for len(requests) < pool {
		random.Shuffle(len(cycle), func(i, j int) { cycle[i], cycle[j] = cycle[j], cycle[i] })
		for _, i := range cycle {
			from := parts[i].requests
			requests = append(requests, from[len(requests)%len(from)])
		}
	}
	return requests
}
