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
	Hit     int        `json:"Shared Hit Blocks"`
	Read    int        `json:"Shared Read Blocks"`
	Plans   []planNode `json:"Plans"`
}

func (n planNode) walk(f func(planNode)) {
	f(n)
	for _, p := range n.Plans {
		p.walk(f)
	}
}

// lists are all combinations of filters, with the index that each has to use and how
// often.
func lists() []struct {
	name  string
	query string
	args  []any
	index string
	arms  int
} {
	type list = struct {
		name  string
		query string
		args  []any
		index string
		arms  int
	}
	const limit = 20
	var all []list
	pets := func(name, index string, arms int, q db.PetQuery) {
		q.Limit = limit
		query, args := petListQuery(q)
		all = append(all, list{name, query, args, index, arms})
	}
	orders := func(name, index string, arms int, q db.OrderQuery) {
		q.Limit = limit
		query, args := orderListQuery(q)
		all = append(all, list{name, query, args, index, arms})
	}
	one, ids := int64(1), []int64{1, 77, 1000, 1_000_000}
	pets("all pets", "pets_pkey", 1, db.PetQuery{})
	pets("pets from the middle", "pets_pkey", 1, db.PetQuery{Before: 1000})
	// All that are sold are old, and pending ones are rare.
	pets("sold pets", "pets_by_status", 1, db.PetQuery{Status: animalstore.PetSold})
	pets("pending pets", "pets_by_status", 1, db.PetQuery{Status: animalstore.PetPending})
	pets("available pets", "pets_by_status", 1, db.PetQuery{Status: animalstore.PetAvailable})
	pets("pets of a category", "pets_by_category", 3, db.PetQuery{CategoryID: &one})
	pets("sold pets of a category", "pets_by_category", 1, db.PetQuery{CategoryID: &one, Status: animalstore.PetSold})
	pets("pets by id", "pets_pkey", 1, db.PetQuery{IDs: ids})
	pets("sold pets by id", "pets_pkey", 1, db.PetQuery{IDs: ids, Status: animalstore.PetSold, CategoryID: &one})
	orders("all orders", "orders_pkey", 1, db.OrderQuery{})
	orders("delivered orders", "orders_by_status", 1, db.OrderQuery{Status: animalstore.OrderDelivered})
	orders("placed orders", "orders_by_status", 1, db.OrderQuery{Status: animalstore.OrderPlaced})
	orders("orders of a pet", "orders_by_pet", 4, db.OrderQuery{PetID: 1})
	orders("delivered orders of a pet", "orders_by_pet", 1, db.OrderQuery{PetID: 1, Status: animalstore.OrderDelivered})
	all = append(all, list{"categories", "SELECT id, name FROM categories WHERE id > $1 ORDER BY id LIMIT $2", []any{int64(5), limit}, "categories_pkey", 1})
	all = append(all, list{"several pages", listPetPages, []any{[]int64{1000, 900, 15_000, 7, 1 << 40}, []int64{4, 4, 4, 4, 4}}, "pets_pkey", 1})
	return all
}

// TestListsCostByLimit: in a large store with unevenly distributed statuses, a page is
// read from one index and only up to its end, with custom and with generic plans.
func TestListsCostByLimit(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	url := server.NewDatabase(t, "")
	d := mustOpen(t, url, Options{Timeout: testenv.Deadline})
	const rows = 20_000
	for _, s := range []string{
		// Sold are the oldest tenth, pending one in a thousand of the rest.
		fmt.Sprintf(`INSERT INTO pets (folded_name, name, category_id, status)
			SELECT 'pet ' || n, 'pet ' || n, n %% 7, CASE WHEN n <= %[1]d / 10 THEN 2 WHEN n %% 1000 = 0 THEN 1 ELSE 0 END FROM generate_series(1, %[1]d) n`, rows),
		fmt.Sprintf(`INSERT INTO orders (pet_id, status, created_at, updated_at)
			SELECT CASE WHEN n %% 3 = 0 THEN 1 ELSE n END, CASE WHEN n <= %[1]d / 10 THEN 2 ELSE 3 END, n, n FROM generate_series(1, %[1]d) n`, rows),
		"INSERT INTO categories SELECT n, '' FROM generate_series(1, 1000) n",
	} {
		server.MustExec(t, pgtest.Name(url), s)
	}
	for _, analysed := range []bool{false, true} {
		if analysed {
			server.MustExec(t, pgtest.Name(url), "VACUUM ANALYZE")
		}
		for _, mode := range []string{"force_generic_plan", "force_custom_plan"} {
			for _, list := range lists() {
				t.Run(fmt.Sprintf("%s, %s, analysed %t", list.name, mode, analysed), func(t *testing.T) {
					plan := planOf(t, d, mode, list.query, list.args)
					var along []string
					sorted := 0
					plan.walk(func(n planNode) {
						switch {
						case strings.Contains(n.Type, "Scan") && n.Type != "Subquery Scan" && n.Type != "Function Scan":
							along = append(along, n.Index)
							if n.Removed+n.Recheck > 3 { // of four ids some may not match
								t.Errorf("%s along %s read past %v rows", n.Type, n.Index, n.Removed+n.Recheck)
							}
						case strings.Contains(n.Type, "Sort"):
							sorted = max(sorted, int(n.Plans[0].Rows*n.Plans[0].Loops))
						}
					})
					if want := slices.Repeat([]string{list.index}, list.arms); !slices.Equal(along, want) {
						t.Errorf("it is read along %q, want %q", along, want)
					}
					// Every row of every arm may be on a different page.
					if touched := plan.Hit + plan.Read; touched > 5*20*list.arms {
						t.Errorf("it touched %d pages, want at most %d", touched, 5*20*list.arms)
					}
					if sorted > 20*list.arms {
						t.Errorf("it sorted %d rows, want no more than its arms hold", sorted)
					}
				})
			}
		}
	}
}

// TestNamesCostByLimit: a page by name reads one index from where it begins, up to the
// number of pets that it may look at, and looks up only the pets it returns.
func TestNamesCostByLimit(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	url := server.NewDatabase(t, "")
	d := mustOpen(t, url, Options{Timeout: testenv.Deadline})
	server.MustExec(t, pgtest.Name(url), `INSERT INTO pets (folded_name, name, category_id, status)
		SELECT n, n, 1, 0 FROM (SELECT CASE WHEN n % 2 = 0 THEN 'rex' ELSE 'pet ' || n END AS n FROM generate_series(1, 50000) n) AS names`)
	for _, analysed := range []bool{false, true} {
		if analysed {
			server.MustExec(t, pgtest.Name(url), "VACUUM ANALYZE")
		}
		for _, mode := range []string{"force_generic_plan", "force_custom_plan"} {
			for name, query := range map[string]struct {
				text string
				args []any
				want []string
			}{
				"all":    {listPetsByName, nil, []string{"pets_by_name"}},
				"filter": {filterPetsByName, []any{new(int64(0)), (*int64)(nil)}, []string{"pets_by_name", "pets_pkey"}},
				"none":   {filterPetsByName, []any{new(int64(2)), (*int64)(nil)}, []string{"pets_by_name", "pets_pkey"}},
			} {
				t.Run(fmt.Sprintf("%s, %s, analysed %t", name, mode, analysed), func(t *testing.T) {
					// From the middle of many equal names.
					plan := planOf(t, d, mode, query.text, append([]any{"rex", int64(30_000), "rey", 21}, query.args...))
					var along []string
					plan.walk(func(n planNode) {
						switch read := n.Rows*n.Loops + n.Removed; {
						case strings.Contains(n.Type, "Index"):
							along = append(along, n.Index)
							most := map[string]float64{"pets_by_name": db.MaxNamesRead, "pets_pkey": 21}[n.Index]
							if name == "all" {
								most = 21
							}
							if read > most {
								t.Errorf("it read %v rows along %s, want at most %v", read, n.Index, most)
							}
						case n.Type == "Seq Scan":
							t.Error("it read the whole table")
						}
					})
					slices.Sort(along)
					if !slices.Equal(along, query.want) {
						t.Errorf("it is read along %q, want %q", along, query.want)
					}
				})
			}
		}
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
	err = conn.QueryRow(t.Context(), "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE it ("+strings.Join(literals, ", ")+")",
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
