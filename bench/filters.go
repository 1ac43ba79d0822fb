package main

import (
	"context"
	"fmt"
	"math/rand/v2"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/db/sqlite"

	zombiezen "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

const (
	common       = 7         // a category with one animal in fifty
	rareCategory = 1_000_000 // one animal in ten thousand, in every status alike
	rarePet      = 1         // an animal with one order in ten thousand
	pageSize     = 20 + 1    // as the server reads it, to know whether there is more
)

// filters holds a page under every combination of filters, from a random place
// deep in a large store, to what it costs in a small one. It asks the database
// itself: the server and its cache would only hide part of the difference.
func filters(ctx context.Context, o options, work string) ([]*table, error) {
	sizes := [2]int{fewAnimals, o.animals}
	var stores [2]*reader
	for i, animals := range sizes {
		file, err := seeded(ctx, o, work, "filters", animals, func(path string) error { return addOrders(ctx, path, animals) })
		if err != nil {
			return nil, err
		}
		if stores[i], err = startReader(ctx, file, animals); err != nil {
			return nil, err
		}
		defer stores[i].stop()
	}
	t := &table{head: fmt.Sprintf("PAGE OF 20, FILTERED BY\tCPU µs AT %d\tAT %d\tRATIO\tMARK\t", sizes[0], sizes[1])}
	for i, read := range filterReads {
		say("%s", read.name)
		var took [2][]float64
		for range o.rounds {
			for s, store := range stores {
				micros, err := store.burst(i, o.burst)
				if err != nil {
					return nil, fmt.Errorf("%s in a store of %d: %w", read.name, sizes[s], err)
				}
				took[s] = append(took[s], micros)
			}
		}
		var ratio []float64
		for round := range took[0] {
			ratio = append(ratio, took[1][round]/took[0][round])
		}
		t.rows = append(t.rows, fmt.Sprintf("%s\t%.1f\t%.1f\t%s\t%s", read.name, median(took[0]), median(took[1]), spread(ratio), t.verdict(bar{atMost: read.mark}, median(ratio), "")))
	}
	t.note("The database alone, one reader, no cache of pages")
	return []*table{t}, nil
}

// What a page may cost more at fifty times the animals. A tree of fifty times the
// rows is a level higher, and less of it stays near the processor. Ids lie on
// pages of their own: of those SQLite's cache holds about half in the small
// store, and next to none in the large one.
const (
	flat    = 1.5
	flatIDs = 2.5
)

// filterReads are all combinations of filters that lists take, with a common
// value and a rare one.
var filterReads = []struct {
	name string
	page func(ctx context.Context, d *sqlite.DB, random *rand.Rand, n int64) error
	mark float64
}{
	{"animals: none", pets(db.PetQuery{}), flat},
	{"animals: status", pets(db.PetQuery{Status: animalstore.PetAvailable}), flat},
	{"animals: rare status", pets(db.PetQuery{Status: rare}), flat},
	{"animals: category", pets(db.PetQuery{CategoryID: new(int64(common))}), flat},
	{"animals: rare category", pets(db.PetQuery{CategoryID: new(int64(rareCategory))}), flat},
	{"animals: category and status", pets(db.PetQuery{CategoryID: new(int64(common)), Status: animalstore.PetAvailable}), flat},
	{"animals: rare category and status", pets(db.PetQuery{CategoryID: new(int64(rareCategory)), Status: animalstore.PetAvailable}), flat},
	{"animals: rare category and rare status", pets(db.PetQuery{CategoryID: new(int64(rareCategory)), Status: rare}), flat},
	{"animals: 1 id", petsByID(1, db.PetQuery{}), flatIDs},
	{"animals: 20 ids", petsByID(20, db.PetQuery{}), flatIDs},
	{"animals: 100 ids", petsByID(100, db.PetQuery{}), flatIDs},
	{"animals: 20 ids and status", petsByID(20, db.PetQuery{Status: animalstore.PetAvailable}), flatIDs},
	{"animals: 20 ids and category", petsByID(20, db.PetQuery{CategoryID: new(int64(common))}), flatIDs},
	{"animals: 20 ids, category and status", petsByID(20, db.PetQuery{CategoryID: new(int64(common)), Status: animalstore.PetAvailable}), flatIDs},
	{"orders: none", orders(db.OrderQuery{}), flat},
	{"orders: status", orders(db.OrderQuery{Status: animalstore.OrderDelivered}), flat},
	{"orders: rare status", orders(db.OrderQuery{Status: animalstore.OrderPlaced}), flat},
	{"orders: animal", orders(db.OrderQuery{PetID: rarePet}), flat},
	{"orders: animal and status", orders(db.OrderQuery{PetID: rarePet, Status: animalstore.OrderDelivered}), flat},
}

func pets(q db.PetQuery) func(context.Context, *sqlite.DB, *rand.Rand, int64) error {
	return func(ctx context.Context, d *sqlite.DB, random *rand.Rand, n int64) error {
		q := q
		q.Before, q.Limit = deep(random, n), pageSize
		page, err := d.Pets(ctx, q)
		return full(len(page), err)
	}
}

func petsByID(count int, q db.PetQuery) func(context.Context, *sqlite.DB, *rand.Rand, int64) error {
	return func(ctx context.Context, d *sqlite.DB, random *rand.Rand, n int64) error {
		q := q
		q.Limit = count + 1
		for range count {
			q.IDs = append(q.IDs, 1+random.Int64N(n))
		}
		_, err := d.Pets(ctx, q) // how many of them match is a matter of luck, in both stores alike
		return err
	}
}

func orders(q db.OrderQuery) func(context.Context, *sqlite.DB, *rand.Rand, int64) error {
	return func(ctx context.Context, d *sqlite.DB, random *rand.Rand, n int64) error {
		q := q
		q.Before, q.Limit = deep(random, n), pageSize
		page, err := d.Orders(ctx, q)
		return full(len(page), err)
	}
}

// deep is a place with enough below it for a page of the rarest combination.
func deep(random *rand.Rand, n int64) int64 { return n*3/5 + random.Int64N(n*2/5) }

func full(n int, err error) error {
	if err == nil && n != pageSize {
		return fmt.Errorf("got a page of %d, want %d", n, pageSize)
	}
	return err
}

// addOrders gives every animal an order, one animal many more, and one animal in
// ten thousand the rare category. A small store gets more of what is rare than
// its share: enough for a page of it. One order in a hundred is open.
func addOrders(ctx context.Context, path string, n int) error {
	every := n / max(n/10_000, 150)
	return inBulk(ctx, path, func(conn *zombiezen.Conn) error {
		for _, statement := range []string{
			`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
				INSERT INTO orders (id, pet_id, status, created_at, updated_at)
				SELECT i, CASE WHEN i % ?2 = 0 THEN 1 ELSE i END,
					CASE WHEN i % ?2 = 0 THEN 2 + (i / ?2) % 2 WHEN i % 100 = 1 THEN 0 WHEN i % 5 = 0 THEN 3 ELSE 2 END,
					1000000000000 + i, 1000000000000 + i FROM n`,
			`UPDATE pets SET category_id = 1000000, status = (id / ?2) % 3 WHERE id % ?2 = 0 AND id <= ?1`,
		} {
			if err := sqlitex.Execute(conn, statement, &sqlitex.ExecOptions{Args: []any{n, every}}); err != nil {
				return fmt.Errorf("add orders: %w", err)
			}
		}
		return nil
	})
}
