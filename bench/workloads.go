package main

import (
	"math/rand/v2"

	"animalstore"
)

const (
	// pool is how many cursors and ids are asked for: far more than any cache
	// of pages would hold.
	pool        = 5000
	largePool   = 50_000 // of ids: more than our cache of animals holds
	connections = 32
	newPet      = `{"name":"Rex the dog 4711","categoryId":7,"status":"available"}`
)

// workload is a kind of traffic that all contestants get.
type workload struct {
	name        string // for -workloads
	title       string
	connections int
	requests    func(a api, n int) []string
	bars        map[string]bar // by contestant
}

// The bars are what was asked of the service. They are not adjusted to what it
// reaches.
var workloads = []workload{
	{"first", "list 20, first page", connections, firstPages,
		map[string]bar{"bare": {atLeast: 0.92}, "pocketbase": {atLeast: 20}, "fastify": {atLeast: 4.5}}},
	{"cursor", "list 20, random cursor", connections, cursorPages,
		map[string]bar{"bare": {atLeast: 0.55}, "pocketbase": {atLeast: 12}, "fastify": {atLeast: 2.5}}},
	{"status", "list 100 of a status", connections, statusPages, nil},
	{"get", "get, random id", connections, gets,
		map[string]bar{"bare": {atLeast: 0.85}, "pocketbase": {atLeast: 5}, "fastify": {atLeast: 1.8}}},
	{"getmany", "get, one of 50,000", connections, manyGets, nil},
	{"create1", "durable create", 1, creates, map[string]bar{"pocketbase": {atLeast: 2}, "fastify": {atLeast: 1.1}}},
	{"create16", "durable create", 16, creates, map[string]bar{"pocketbase": {atLeast: 5}, "fastify": {atLeast: 3}}},
	{"create128", "durable create", 128, creates, map[string]bar{"pocketbase": {atLeast: 9}, "fastify": {atLeast: 4.5}}},
	{"mix", "mix: 90 % reads, 10 % creates", connections, ninetyTen, map[string]bar{"bare": {atLeast: 0.6}}},
}

func firstPages(a api, _ int) []string { return []string{"GET " + a.list(page{limit: 20})} }

func statusPages(a api, _ int) []string {
	return []string{"GET " + a.list(page{limit: 100, status: animalstore.PetAvailable})}
}

func cursorPages(a api, n int) []string {
	random := rand.New(rand.NewPCG(3, 4))
	requests := make([]string, pool)
	for i := range requests {
		requests[i] = "GET " + a.list(page{below: randomPosition(random, n), limit: 20})
	}
	return requests
}

// randomPosition is an id below which there are at least two pages.
func randomPosition(random *rand.Rand, n int) int64 { return 50 + random.Int64N(int64(n)-50) }

func gets(a api, n int) []string     { return randomGets(a, n, pool) }
func manyGets(a api, n int) []string { return randomGets(a, n, largePool) }

func randomGets(a api, n, pool int) []string {
	random := rand.New(rand.NewPCG(5, 6))
	requests := make([]string, pool)
	for i := range requests {
		requests[i] = "GET " + a.get(1+random.Int64N(int64(n)))
	}
	return requests
}

func creates(a api, _ int) []string { return []string{"POST " + a.create + " " + newPet} }

// ninetyTen has nine reads for each create. Half of the reads are lists, from
// the head and from random places alike, and half ask for one animal.
func ninetyTen(a api, n int) []string {
	return mix(part{9, firstPages(a, n)}, part{9, cursorPages(a, n)}, part{18, gets(a, n)}, part{4, creates(a, n)})
}

// part is a kind of request and how often it comes in a mix.
type part struct {
	share    int
	requests []string
}

// mix shuffles parts by their shares, the same way each time.
func mix(parts ...part) []string {
	var cycle []int
	for i, p := range parts {
		for range p.share {
			cycle = append(cycle, i)
		}
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
