//go:build unix

package postgres

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/db/postgres/pgtest"
	"animalstore/internal/testenv"

	"github.com/jackc/pgx/v5"
)

// planNode is a step of an executed plan.
type planNode struct {
	Type    string     `json:"Node Type"`
	Index   string     `json:"Index Name"`
	Rows    float64    `json:"Actual Rows"`
	Loops   float64    `json:"Actual Loops"`
	Removed float64    `json:"Rows Removed by Filter"`
	Recheck float64    `json:"Rows Removed by Index Recheck"`
	Plans   []planNode `json:"Plans"`
}

func (n planNode) walk(f func(planNode)) {
	f(n)
	for _, p := range n.Plans {
		p.walk(f)
	}
}

// read is a query, with the indexes it has to use.
type read struct {
	name  string
	query string
	args  []any
	along []string
}

// reads are all combinations of filters.
func reads() []read {
	const limit = 20
	var all []read
	add := func(name, query string, args []any, along ...string) {
		all = append(all, read{name, query, args, along})
	}
	pets := func(name string, q animalstore.PetQuery, along ...string) {
		query, args := listPets.Statement(q, db.Page{Limit: limit})
		add(name, query, args, along...)
	}
	orders := func(name string, q animalstore.OrderQuery, along ...string) {
		query, args := db.OrderStatement(&newestOrders, &oldestOrders, q, db.Page{Limit: limit})
		add(name, query, args, along...)
	}
	const byCategory, ofPet = "pets_by_category", "orders_by_pet"
	one, ids := int64(1), []int64{1, 77, 1000, 1_000_000}
	pets("all pets", animalstore.PetQuery{}, "pets_pkey")
	fromMiddle, args := listPets.Statement(animalstore.PetQuery{}, db.Page{After: 1000, Limit: limit})
	add("pets from the middle", fromMiddle, args, "pets_pkey")
	pets("sold pets", animalstore.PetQuery{Status: animalstore.PetSold}, "pets_by_status")
	pets("pending pets", animalstore.PetQuery{Status: animalstore.PetPending}, "pets_by_status")
	pets("available pets", animalstore.PetQuery{Status: animalstore.PetAvailable}, "pets_by_status")
	pets("pets of a category", animalstore.PetQuery{CategoryID: &one}, byCategory, byCategory, byCategory)
	pets("sold pets of a category", animalstore.PetQuery{CategoryID: &one, Status: animalstore.PetSold}, byCategory)
	pets("pets by id", animalstore.PetQuery{IDs: ids}, "pets_pkey")
	pets("sold pets by id", animalstore.PetQuery{IDs: ids, Status: animalstore.PetSold, CategoryID: &one}, "pets_pkey")
	add("several pages", listPetPages, []any{[]int64{1000, 900, 15_000, 7, 1 << 40}, []int64{4, 4, 4, 4, 4}}, slices.Repeat([]string{"pets_pkey"}, 5)...)
	delivered, placed := animalstore.OrderStatuses[2:3], animalstore.OrderStatuses[:1]
	for sort, oldest := range map[string]bool{", newest first": false, ", oldest first": true} {
		orders("all orders"+sort, animalstore.OrderQuery{Oldest: oldest}, "orders_pkey")
		orders("delivered orders"+sort, animalstore.OrderQuery{Statuses: delivered, Oldest: oldest}, "orders_by_status")
		orders("placed orders"+sort, animalstore.OrderQuery{Statuses: placed, Oldest: oldest}, "orders_by_status")
		orders("open orders"+sort, animalstore.OrderQuery{Statuses: animalstore.OrderStatuses[:2], Oldest: oldest}, "orders_by_status", "orders_by_status")
		orders("orders of a pet"+sort, animalstore.OrderQuery{PetID: 1, Oldest: oldest}, ofPet, ofPet, ofPet, ofPet)
		orders("delivered orders of a pet"+sort, animalstore.OrderQuery{PetID: 1, Statuses: delivered, Oldest: oldest}, ofPet)
		orders("orders with a reference"+sort, animalstore.OrderQuery{Reference: "web", Oldest: oldest}, slices.Repeat([]string{"orders_by_reference"}, 4)...)
		orders("orders of a pet with a reference"+sort, animalstore.OrderQuery{PetID: 1, Reference: "web", Oldest: oldest}, slices.Repeat([]string{"orders_by_pet_reference"}, 4)...)
		orders("placed orders of a pet with a reference"+sort, animalstore.OrderQuery{PetID: 1, Reference: "web", Statuses: placed, Oldest: oldest}, "orders_by_pet_reference")
	}
	add("categories", "SELECT id, name FROM categories WHERE id > $1 ORDER BY id LIMIT $2", []any{int64(5), limit}, "categories_pkey")
	deliveries := func(name string, q animalstore.DeliveryQuery, along ...string) {
		add(name, listDeliveries, []any{db.UpperBound(1000), limit, int64(1), db.StoredStates(q)}, along...)
	}
	deliveries("deliveries", animalstore.DeliveryQuery{}, slices.Repeat([]string{"deliveries_by_webhook"}, 3)...)
	deliveries("failed deliveries", animalstore.DeliveryQuery{State: animalstore.DeliveryFailed}, "deliveries_by_webhook")
	failures := func(name string, q animalstore.FailureQuery, along ...string) {
		q.Since = animalstore.AtMilli(1000)
		query, args := listFailures.Statement(q, db.Page{After: 1000, Limit: limit})
		add(name, query, args, along...)
	}
	failures("failed requests", animalstore.FailureQuery{}, "failures_by_time", "failures_pkey")
	failures("failed requests of a key", animalstore.FailureQuery{KeyID: 1}, "failures_by_key", "failures_by_time")
	failures("failed requests with a code", animalstore.FailureQuery{Code: "rare"}, "failures_by_code", "failures_by_time")
	failures("failed requests with an id", animalstore.FailureQuery{RequestID: "same"}, "failures_by_request", "failures_by_time")
	for name, q := range map[string]db.EventQuery{
		"events of a pet": {PetID: 1}, "events of a pet from the middle": {PetID: 1, After: 1000}, "events of a pet, newest first": {PetID: 1, Before: db.LatestEvents},
	} {
		filter := q.Filter()
		query, args := eventListQuery(&q, &filter)
		args[1], args[2] = limit, limit // instead of all that it would examine
		add(name, query, args, "events_by_pet")
	}
	add("the time of an event", selectEventTime, []any{int64(5)}, "events_pkey")
	names := func(name string, q db.NameQuery) {
		q.Prefix, q.Limit = "rex", limit-1
		q.After = db.NamePosition{Entry: "rex", ID: 12_000} // in the middle of many equal entries
		query, args := nameListQuery(q)
		add(name, query, args, "name_entries_pkey", "pets_pkey")
	}
	names("names", db.NameQuery{})
	names("names of available pets", db.NameQuery{PetQuery: animalstore.PetQuery{Status: animalstore.PetAvailable}})
	names("names of sold pets, which are older", db.NameQuery{PetQuery: animalstore.PetQuery{Status: animalstore.PetSold}})
	return all
}

// TestReadsUseTheirIndex_Slow: in a large store with unevenly distributed statuses, a page is read
// along its index and only up to its end, with custom and with generic plans. A page of names
// with a filter examines a limited number of pets, and looks up only those it returns.
func TestReadsUseTheirIndex_Slow(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	url := server.NewDatabase(t, "")
	d := mustOpen(t, url, Options{Timeout: testenv.Deadline})
	// Sold are the oldest tenth, pending one in a thousand of the rest.
	server.MustExec(t, pgtest.Name(url), `
		INSERT INTO name_entries SELECT CASE WHEN n % 2 = 0 THEN 'rex' ELSE 'pet ' || n END, n, 0 FROM generate_series(1, 20000) n;
		INSERT INTO pets (name, category_id, status)
			SELECT 'pet ' || n, n % 7, CASE WHEN n <= 2000 THEN 2 WHEN n % 1000 = 0 THEN 1 ELSE 0 END
			FROM generate_series(1, 20000) n;
		INSERT INTO orders (pet_id, status, reference, note, created_at, updated_at)
			SELECT CASE WHEN n % 3 = 0 THEN 1 ELSE n END, CASE WHEN n <= 2000 THEN 2 ELSE 3 END, CASE n % 4 WHEN 0 THEN 'web' WHEN 1 THEN 'no ' || n ELSE '' END, '', n, n FROM generate_series(1, 20000) n;
		INSERT INTO failures (time, request_id, key_id, method, route, path, status, code, message, duration_ms)
			SELECT n * 1000, CASE WHEN n % 2 = 0 THEN 'same' ELSE 'r' || n END, n % 3, 'GET', '', '', 404, CASE WHEN n % 10 = 0 THEN 'rare' ELSE 'common' END, '', 0
			FROM generate_series(1, 20000) n;
		INSERT INTO events (id, type, subject_id, pet_id, created_at, key_id, request_id, data)
			SELECT n, CASE WHEN n % 4 = 0 THEN 9 ELSE 1 END, n, CASE WHEN n % 4 = 0 THEN 0 WHEN n % 3 = 0 THEN 1 ELSE n END, n, 1, '', '{}' FROM generate_series(1, 20000) n;
		INSERT INTO deliveries (webhook_id, event_id, type, event_time, data, state, tries, attempts, due_at, created_at)
			SELECT n % 3, n, 0, n, '{}', CASE WHEN n <= 2000 THEN 2 ELSE 1 END, 1, '[]', n, n FROM generate_series(1, 20000) n;
		INSERT INTO categories SELECT n, '' FROM generate_series(1, 1000) n`)
	for _, analysed := range []bool{false, true} {
		if analysed {
			server.MustExec(t, pgtest.Name(url), "VACUUM ANALYZE")
		}
		for _, mode := range []string{"force_generic_plan", "force_custom_plan"} {
			for _, read := range reads() {
				t.Run(fmt.Sprintf("%s, %s, analysed %t", read.name, mode, analysed), func(t *testing.T) {
					checkPlan(t, planOf(t, d, mode, read.query, read.args), read.along)
				})
			}
		}
	}
}

// checkPlan checks that a plan reads along these indexes, and few rows of each.
func checkPlan(t *testing.T, plan planNode, want []string) {
	t.Helper()
	var along []string
	plan.walk(func(n planNode) {
		if !strings.Contains(n.Type, "Scan") || n.Type == "Subquery Scan" || n.Type == "Function Scan" || n.Type == "Values Scan" {
			return
		}
		most, times := 20.0, int(n.Loops) // one for each status
		if slices.Contains(want, "name_entries_pkey") {
			most, times = db.MaxNamesRead/n.Loops, 1
		}
		along = append(along, slices.Repeat([]string{n.Index}, times)...)
		if read := n.Rows + n.Removed + n.Recheck; read > most {
			t.Errorf("%s along %s read %v rows, want at most %v", n.Type, n.Index, read, most)
		}
	})
	slices.Sort(along)
	if !slices.Equal(along, want) {
		t.Errorf("it is read along %q, want %q", along, want)
	}
}

// planOf runs a query like d does and returns its plan.
func planOf(t *testing.T, d *DB, mode, query string, args []any) planNode {
	t.Helper()
	conn, err := d.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	literals := make([]string, len(args))
	for i, arg := range args {
		literals[i] = literal(arg)
	}
	var text []byte
	for _, s := range []string{"SET plan_cache_mode = " + mode, "PREPARE it AS " + query} {
		if _, err := conn.Exec(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	defer conn.Exec(t.Context(), "DEALLOCATE it")
	err = conn.QueryRow(t.Context(), "EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE it ("+strings.Join(literals, ", ")+")",
		pgx.QueryExecModeSimpleProtocol).Scan(&text)
	if err != nil {
		t.Fatalf("explain %s: %v", query, err)
	}
	var plans []struct{ Plan planNode }
	if err := json.Unmarshal(text, &plans); err != nil || len(plans) != 1 {
		t.Fatalf("%v in %s", err, text)
	}
	return plans[0].Plan
}

func literal(arg any) string {
	switch v := arg.(type) {
	case string:
		return "'" + v + "'"
	case []int64:
		return "'" + strings.NewReplacer("[", "{", "]", "}", " ", ",").Replace(fmt.Sprint(v)) + "'"
	case *int64:
		if v == nil {
			return "NULL"
		}
		return fmt.Sprint(*v)
	}
	return fmt.Sprint(arg)
}
