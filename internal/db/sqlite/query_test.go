package sqlite

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"animalstore"
	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

func TestReopenKeepsData(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	d := mustOpen(t, path, Options{Serve: true})
	pet, _, err := d.CreatePet(t.Context(), animalstore.NewPet{Name: "Rex", CategoryID: 1, Status: animalstore.PetSold}, nil)
	if err != nil {
		t.Fatal(err)
	}
	d.Close()
	// An id is never given again, not even when its animal is gone.
	script(t, path, "DELETE FROM pets")
	d = mustOpen(t, path, Options{Serve: true})
	second, _, err := d.CreatePet(t.Context(), animalstore.NewPet{Name: "Max", CategoryID: 2}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if second.ID <= pet.ID {
		t.Errorf("id %d was given after id %d", second.ID, pet.ID)
	}
	d.Close()
	d = mustOpen(t, path, Options{Serve: true})
	if got, err := d.Pet(t.Context(), second.ID); err != nil || got != second {
		t.Errorf("after reopening: %+v, %v, want %+v", got, err, second)
	}
}

func TestConnectionsAreDurable(t *testing.T) {
	d := mustOpen(t, filepath.Join(t.TempDir(), "store.db"), Options{Serve: true})
	check := func(c *sqlite.Conn) error {
		for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1"} {
			got, err := sqlitex.ResultText(c.Prep("PRAGMA " + pragma))
			if err != nil || got != want {
				return fmt.Errorf("%s = %q, %v, want %q", pragma, got, err, want)
			}
		}
		return nil
	}
	// Every connection that can write, not only the one that does.
	for range d.nread {
		if err := d.read(t.Context(), check); err != nil {
			t.Errorf("reader: %v", err)
		}
	}
	if err := d.writer.do(t.Context(), check); err != nil {
		t.Errorf("writer: %v", err)
	}
}

// statements are the queries that reader connections have prepared so far: what
// was really run, where a copy of it in a test would grow old.
func statements(t *testing.T, d *DB) []string {
	t.Helper()
	var queries []string
	for range d.nread {
		err := d.read(t.Context(), func(c *sqlite.Conn) error {
			prepared := reflect.ValueOf(c).Elem().FieldByName("stmts")
			if prepared.Kind() != reflect.Map {
				return fmt.Errorf("the driver keeps its statements elsewhere now: adapt this test")
			}
			for _, query := range prepared.MapKeys() {
				queries = append(queries, query.String())
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return queries
}

func plan(t *testing.T, d *DB, query string) string {
	t.Helper()
	var steps []string
	err := d.read(t.Context(), func(c *sqlite.Conn) error {
		stmt, _, err := c.PrepareTransient("EXPLAIN QUERY PLAN " + query)
		if err != nil {
			return err
		}
		defer stmt.Finalize()
		for {
			more, err := stmt.Step()
			if err != nil || !more {
				return err
			}
			steps = append(steps, stmt.GetText("detail"))
		}
	})
	if err != nil {
		t.Fatalf("explain %s: %v", query, err)
	}
	return strings.Join(steps, "; ")
}

func TestListsUseTheirIndex(t *testing.T) {
	pets := func(q db.PetQuery) func(*DB) error {
		return func(d *DB) error { _, err := d.Pets(t.Context(), q); return err }
	}
	orders := func(q db.OrderQuery) func(*DB) error {
		return func(d *DB) error { _, err := d.Orders(t.Context(), q); return err }
	}
	for _, c := range []struct {
		name string
		run  func(*DB) error
		want string
	}{
		{"all animals", pets(db.PetQuery{Limit: 20}), "SEARCH pets USING INTEGER PRIMARY KEY (rowid<?)"},
		{"animals by status", pets(db.PetQuery{Limit: 20, Status: animalstore.PetSold}), "SEARCH pets USING COVERING INDEX pets_by_status (status=? AND id<?)"},
		{"all orders", orders(db.OrderQuery{Limit: 20}), "SEARCH orders USING INTEGER PRIMARY KEY (rowid<?)"},
		{"orders by status", orders(db.OrderQuery{Limit: 20, Status: animalstore.OrderPlaced}), "SEARCH orders USING INDEX orders_by_status (status=? AND id<?)"},
		{"orders by animal", orders(db.OrderQuery{Limit: 20, PetID: 1}), "SEARCH orders USING INDEX orders_by_pet (pet_id=? AND id<?)"},
		{"orders by both", orders(db.OrderQuery{Limit: 20, PetID: 1, Status: animalstore.OrderPlaced}), "SEARCH orders USING INDEX orders_by_pet (pet_id=? AND id<?)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := mustOpen(t, filepath.Join(t.TempDir(), "store.db"), Options{Serve: true})
			before := statements(t, d)
			if err := c.run(d); err != nil {
				t.Fatal(err)
			}
			queries := slices.DeleteFunc(statements(t, d), func(q string) bool { return slices.Contains(before, q) })
			if len(queries) != 1 {
				t.Fatalf("got queries %q, want one", queries)
			}
			if got := plan(t, d, queries[0]); got != c.want {
				t.Errorf("%s\ngot  %s\nwant %s", queries[0], got, c.want)
			}
			if strings.Contains(queries[0], "OFFSET") || strings.Contains(strings.ToLower(queries[0]), "count(") {
				t.Errorf("a list must not count or skip: %s", queries[0])
			}
		})
	}
}

func TestOrdersSelect(t *testing.T) {
	d := mustOpen(t, filepath.Join(t.TempDir(), "store.db"), Options{Serve: true})
	var all []animalstore.Order // newest first
	err := d.writer.do(t.Context(), func(c *sqlite.Conn) error {
		for i := range 40 {
			o := animalstore.Order{
				ID: int64(i + 1), PetID: int64(i%5 + 1), Status: animalstore.OrderStatuses[i%4],
				CreatedAt: animalstore.AtMilli(int64(1e12 + i)), UpdatedAt: animalstore.AtMilli(int64(2e12 + i)),
			}
			err := sqlitex.Execute(c, "INSERT INTO orders (id, pet_id, status, created_at, updated_at) VALUES (?, ?, ?, ?, ?)",
				&sqlitex.ExecOptions{Args: []any{o.ID, o.PetID, i % 4, o.CreatedAt.Milli(), o.UpdatedAt.Milli()}})
			if err != nil {
				return err
			}
			all = slices.Insert(all, 0, o)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, status := range append([]animalstore.OrderStatus{""}, animalstore.OrderStatuses...) {
		for _, pet := range []int64{0, 1, 5, 6} {
			for _, limit := range []int{1, 3, 100} {
				q := db.OrderQuery{Status: status, PetID: pet, Limit: limit}
				var want []animalstore.Order
				for _, o := range all {
					if (status == "" || o.Status == status) && (pet == 0 || o.PetID == pet) {
						want = append(want, o)
					}
				}
				if got := pageThroughOrders(t, d, q); !slices.Equal(got, want) {
					t.Errorf("paging with %+v\ngot  %+v\nwant %+v", q, got, want)
				}
			}
		}
	}
}

func pageThroughOrders(t *testing.T, d *DB, q db.OrderQuery) []animalstore.Order {
	t.Helper()
	var all []animalstore.Order
	for {
		page, err := d.Orders(t.Context(), q)
		if err != nil {
			t.Fatalf("Orders(%+v): %v", q, err)
		}
		if len(page) > q.Limit {
			t.Fatalf("Orders(%+v) returned %d", q, len(page))
		}
		all = append(all, page...)
		if len(page) < q.Limit {
			return all
		}
		q.Before = page[len(page)-1].ID
	}
}
