package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/db/sqlite"
)

const pageSize = 20 + 1 // as the server reads it, to know whether there is more

// filters compares a page under every combination of filters, from a random
// place deep in a large store, with the same in a small one. It reads the
// database directly: the server and its cache would hide part of the difference.
func filters(b *bench) []*table {
	var readers []*server
	for _, pets := range []int{fewPets, b.pets} {
		// Two stores in one process would share SQLite's cache, and the larger
		// would push the smaller out of it.
		s := server{name: "reader-" + strconv.Itoa(pets), api: api{list: func(page) string { return "/" }}}
		readers = append(readers, b.startSelf(s, "reader", b.seededFile(pets, "orders"), strconv.Itoa(pets)))
	}
	var all []cost
	for i, read := range filterReads {
		progress("%s", read.name)
		var micros [2][]float64
		for range b.rounds {
			for side, reader := range readers {
				var took float64
				reader.decode(http.MethodGet, fmt.Sprintf("/?read=%d&for=%v", i, b.burst), "", &took)
				micros[side] = append(micros[side], took)
			}
		}
		work := "page"
		if read.ids > 0 {
			work = "ids"
		}
		all = append(all, cost{read.name, "", micros[0], micros[1], barFor("filters", work, "small")})
	}
	return []*table{growthTable("CPU µs for a page of 20, by filters", b.pets, all)}
}

// serveReader reads pages from a store on request. Its arguments are an address,
// a SQLite file and the number of pets in it.
func serveReader(args []string) {
	n := must(strconv.ParseInt(args[2], 10, 64))
	store := must(sqlite.Open(context.Background(), args[1], sqlite.Options{Serve: true, MustExist: true}))
	random := rand.New(rand.NewPCG(7, uint64(n)))
	check(http.ListenAndServe(args[0], http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Without values the caller only wants to know whether it is ready.
		i, _ := strconv.Atoi(r.FormValue("read"))
		read := filterReads[i]
		length, _ := time.ParseDuration(r.FormValue("for"))
		calls, before := 0, cpuTime()
		for end := time.Now().Add(length); calls == 0 || time.Now().Before(end); calls++ {
			if err := read.run(r.Context(), store, random, n); err != nil {
				http.Error(w, read.name+": "+err.Error(), http.StatusInternalServerError)
				return
			}
		}
		fmt.Fprintln(w, float64((cpuTime()-before).Nanoseconds())/1000/float64(calls))
	})))
}

func cpuTime() time.Duration {
	var usage syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// filterRead is a page of a list under some filters.
type filterRead struct {
	name   string
	pets   db.PetQuery
	ids    int            // also filter by that many random ids
	orders *db.OrderQuery // instead of pets
}

var (
	common = new(int64(commonCategory))
	rare   = new(int64(rareCategory))
)

// filterReads are all combinations of filters that lists take, with a common
// value and a rare one.
var filterReads = []filterRead{
	{name: "pets: none"},
	{name: "pets: status", pets: db.PetQuery{Status: animalstore.PetAvailable}},
	{name: "pets: rare status", pets: db.PetQuery{Status: rareStatus}},
	{name: "pets: category", pets: db.PetQuery{CategoryID: common}},
	{name: "pets: rare category", pets: db.PetQuery{CategoryID: rare}},
	{name: "pets: category and status", pets: db.PetQuery{CategoryID: common, Status: animalstore.PetAvailable}},
	{name: "pets: rare category and status", pets: db.PetQuery{CategoryID: rare, Status: animalstore.PetAvailable}},
	{name: "pets: rare category and rare status", pets: db.PetQuery{CategoryID: rare, Status: rareStatus}},
	{name: "pets: 1 id", ids: 1},
	{name: "pets: 20 ids", ids: 20},
	{name: "pets: 100 ids", ids: 100},
	{name: "pets: 20 ids and status", ids: 20, pets: db.PetQuery{Status: animalstore.PetAvailable}},
	{name: "pets: 20 ids and category", ids: 20, pets: db.PetQuery{CategoryID: common}},
	{name: "pets: 20 ids, category and status", ids: 20, pets: db.PetQuery{CategoryID: common, Status: animalstore.PetAvailable}},
	{name: "orders: none", orders: &db.OrderQuery{}},
	{name: "orders: status", orders: &db.OrderQuery{Status: animalstore.OrderDelivered}},
	{name: "orders: rare status", orders: &db.OrderQuery{Status: animalstore.OrderPlaced}},
	{name: "orders: pet", orders: &db.OrderQuery{PetID: rarePet}},
	{name: "orders: pet and status", orders: &db.OrderQuery{PetID: rarePet, Status: animalstore.OrderDelivered}},
}

// run reads the page once, from a random place in a store of n pets.
func (f filterRead) run(ctx context.Context, store *sqlite.DB, random *rand.Rand, n int64) error {
	// Enough is below it for a page of the rarest combination.
	before := n*3/5 + random.Int64N(n*2/5)
	if f.orders != nil {
		q := *f.orders
		q.Before, q.Limit = before, pageSize
		page, err := store.Orders(ctx, q)
		return checkFull(len(page), err)
	}
	q := f.pets
	if f.ids == 0 {
		q.Before, q.Limit = before, pageSize
		page, err := store.Pets(ctx, q)
		return checkFull(len(page), err)
	}
	q.Limit = f.ids + 1
	for range f.ids {
		q.IDs = append(q.IDs, 1+random.Int64N(n))
	}
	_, err := store.Pets(ctx, q)
	return err // how many of them match is chance, in both stores alike
}

func checkFull(n int, err error) error {
	if err == nil && n != pageSize {
		return fmt.Errorf("got a page of %d, want %d", n, pageSize)
	}
	return err
}
