package sqlite

import (
	"context"
	"errors"
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
	// Ids are never reused, not even when the pet is deleted.
	script(t, path, "DELETE FROM pets")
	d = mustOpen(t, path, Options{Serve: true})
	second, _, err := d.CreatePet(t.Context(), animalstore.NewPet{Name: "Max", CategoryID: 2}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if second.ID <= pet.ID {
		t.Errorf("id %d was assigned after id %d", second.ID, pet.ID)
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
	forEachReader(d, func() {
		if err := d.read(t.Context(), check); err != nil {
			t.Errorf("reader: %v", err)
		}
	})
	if err := d.writer.do(t.Context(), check); err != nil {
		t.Errorf("writer: %v", err)
	}
}

// statements returns the queries that reader connections have prepared so far. They
// are what really ran, while a copy in a test would become outdated.
func statements(t *testing.T, d *DB) []string {
	t.Helper()
	var queries []string
	forEachReader(d, func() {
		err := d.read(t.Context(), func(c *sqlite.Conn) error {
			some, err := prepared(c)
			queries = append(queries, some...)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
	return queries
}

// prepared returns the queries that a connection has prepared so far.
func prepared(c *sqlite.Conn) (queries []string, err error) {
	stmts := reflect.ValueOf(c).Elem().FieldByName("stmts")
	if stmts.Kind() != reflect.Map {
		return nil, errors.New("the driver keeps its statements elsewhere now: adapt this test")
	}
	for _, query := range stmts.MapKeys() {
		queries = append(queries, query.String())
	}
	return queries, nil
}

func plan(t *testing.T, d *DB, query string) (steps []string) {
	t.Helper()
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
	return steps
}

// lists are all combinations of filters, each with the way it has to be read: from one
// index, from the first row of the page to the last, in the given number of arms.
func lists() []struct {
	name   string
	run    func(context.Context, *DB) error
	search string
	arms   int
} {
	pets := func(q db.PetQuery) func(context.Context, *DB) error {
		q.Limit = 20
		return func(ctx context.Context, d *DB) error { _, err := d.Pets(ctx, q); return err }
	}
	orders := func(q db.OrderQuery) func(context.Context, *DB) error {
		q.Limit = 20
		return func(ctx context.Context, d *DB) error { _, err := d.Orders(ctx, q); return err }
	}
	categories := func(q db.CategoryQuery) func(context.Context, *DB) error {
		q.Limit = 20
		return func(ctx context.Context, d *DB) error { _, err := d.Categories(ctx, q); return err }
	}
	const (
		byStatus   = "SEARCH pets USING COVERING INDEX pets_by_status (status=? AND id<?)"
		byCategory = "SEARCH pets USING COVERING INDEX pets_by_category (category_id=? AND status=? AND id<?)"
		byID       = "SEARCH pets USING INTEGER PRIMARY KEY (rowid=?)"
		byPet      = "SEARCH orders USING COVERING INDEX orders_by_pet (pet_id=? AND status=? AND id<?)"
	)
	sold, seven, ids := animalstore.PetSold, new(int64(7)), []int64{1, 2}
	return []struct {
		name   string
		run    func(context.Context, *DB) error
		search string
		arms   int
	}{
		{"all pets", pets(db.PetQuery{}), "SEARCH pets USING INTEGER PRIMARY KEY (rowid<?)", 1},
		{"pets by status", pets(db.PetQuery{Status: sold}), byStatus, 1},
		{"pets by category", pets(db.PetQuery{CategoryID: seven}), byCategory, 3},
		{"pets by category and status", pets(db.PetQuery{CategoryID: seven, Status: sold}), byCategory, 1},
		{"pets by id", pets(db.PetQuery{IDs: ids}), byID, 1},
		{"pets by id and status", pets(db.PetQuery{IDs: ids, Status: sold}), byID, 1},
		{"pets by id and category", pets(db.PetQuery{IDs: ids, CategoryID: seven}), byID, 1},
		{"pets by id, category and status", pets(db.PetQuery{IDs: ids, CategoryID: seven, Status: sold}), byID, 1},
		{"all orders", orders(db.OrderQuery{}), "SEARCH orders USING INTEGER PRIMARY KEY (rowid<?)", 1},
		{"orders by status", orders(db.OrderQuery{Status: animalstore.OrderPlaced}), "SEARCH orders USING COVERING INDEX orders_by_status (status=? AND id<?)", 1},
		{"orders by pet", orders(db.OrderQuery{PetID: 1}), byPet, 4},
		{"orders by pet and status", orders(db.OrderQuery{PetID: 1, Status: animalstore.OrderPlaced}), byPet, 1},
		{"all categories", categories(db.CategoryQuery{}), "SEARCH categories USING INTEGER PRIMARY KEY (rowid>?)", 1},
		{"categories after one", categories(db.CategoryQuery{After: seven}), "SEARCH categories USING INTEGER PRIMARY KEY (rowid>?)", 1},
	}
}

// ran returns the one query that run really prepares.
func ran(t *testing.T, d *DB, run func(context.Context, *DB) error) string {
	t.Helper()
	before := statements(t, d)
	if err := run(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	around := []string{"BEGIN", "COMMIT"}
	queries := slices.DeleteFunc(statements(t, d), func(q string) bool { return slices.Contains(before, q) || slices.Contains(around, q) })
	if len(queries) != 1 {
		t.Fatalf("got queries %q, want one", queries)
	}
	return queries[0]
}

// TestEventsUseTheirIndex: a page of events, oldest or newest first, all or those of one
// resource, is read from one index, without sorting, and costs the same however many
// events there are.
func TestEventsUseTheirIndex(t *testing.T) {
	d := mustOpen(t, filepath.Join(t.TempDir(), "store.db"), Options{Serve: true})
	for query, want := range map[string]string{
		listEvents:          "SEARCH events USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)",
		listEventsBySubject: "SEARCH events USING INDEX events_by_subject (subject_id=? AND rowid>? AND rowid<?)",
		eventsBefore:        "SEARCH events USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)",
		subjectEventsBefore: "SEARCH events USING INDEX events_by_subject (subject_id=? AND rowid>? AND rowid<?)",
	} {
		if got := plan(t, d, query); !slices.Equal(got, []string{want}) {
			t.Errorf("%s\nreads %q\nwant  %q", query, got, want)
		}
	}
}

// TestNamesUseTheirIndex: a page by name is read from one index, from where it begins and
// without sorting, also in the middle of many equal names.
func TestNamesUseTheirIndex(t *testing.T) {
	d := mustOpen(t, filepath.Join(t.TempDir(), "store.db"), Options{Serve: true})
	var got []string
	for _, step := range plan(t, d, listPetsByName) {
		if strings.HasPrefix(step, "S") && !strings.Contains(step, "subquery") || strings.Contains(step, "TEMP") {
			got = append(got, step)
		}
	}
	const index = "SEARCH pets USING COVERING INDEX pets_by_name "
	if want := []string{index + "(folded_name=? AND id>?)", index + "(folded_name>? AND folded_name<?)"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestListsUseTheirIndex(t *testing.T) {
	for _, list := range lists() {
		t.Run(list.name, func(t *testing.T) {
			d := mustOpen(t, filepath.Join(t.TempDir(), "store.db"), Options{Serve: true})
			query := ran(t, d, list.run)
			sorts, got := 0, []string{}
			for _, step := range plan(t, d, query) {
				switch {
				case strings.HasPrefix(step, "USE TEMP B-TREE"):
					sorts++
				case strings.HasPrefix(step, "SEARCH "), strings.HasPrefix(step, "SCAN ") && !strings.HasPrefix(step, "SCAN (subquery") && !strings.HasPrefix(step, "SCAN json_each"):
					got = append(got, step)
				}
			}
			if want := slices.Repeat([]string{list.search}, list.arms); !slices.Equal(got, want) {
				t.Errorf("%s\nreads %q\nwant  %q", query, got, want)
			}
			// Arms are sorted into one list, which is cheap as long as none of
			// them holds more than the page. A single arm is already sorted.
			wantSorts, limits := 0, 1
			if list.arms > 1 {
				wantSorts, limits = list.arms, list.arms+1
			}
			if got := strings.Count(query, "LIMIT +?"); sorts != wantSorts || got != limits {
				t.Errorf("%s\nsorts %d times with %d limits, want %d times with %d", query, sorts, got, wantSorts, limits)
			}
			if strings.Contains(query, "OFFSET") || strings.Contains(strings.ToLower(query), "count(") {
				t.Errorf("a list must not count or skip: %s", query)
			}
		})
	}
}

// TestEveryIndexIsNeeded: each index, which makes writes slower, serves a list or
// enforces a rule.
func TestEveryIndexIsNeeded(t *testing.T) {
	d := mustOpen(t, filepath.Join(t.TempDir(), "store.db"), Options{Serve: true})
	var indexes []string
	err := d.read(t.Context(), func(c *sqlite.Conn) error {
		return sqlitex.ExecuteTransient(c, "SELECT name FROM sqlite_schema WHERE type = 'index' AND tbl_name IN ('pets', 'orders', 'categories')", &sqlitex.ExecOptions{
			ResultFunc: func(stmt *sqlite.Stmt) error { indexes = append(indexes, stmt.ColumnText(0)); return nil },
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	needed := []string{
		"orders_open",  // at most one open order for a pet
		"pets_by_name", // see TestNamesUseTheirIndex
	}
	for _, list := range lists() {
		for _, index := range indexes {
			if strings.Contains(list.search, " "+index+" ") {
				needed = append(needed, index)
			}
		}
	}
	for _, index := range indexes {
		if !slices.Contains(needed, index) {
			t.Errorf("index %s serves no list", index)
		}
	}
	if len(indexes) != 6 {
		t.Errorf("got indexes %q, want six", indexes)
	}
}

// TestWritesUseTheirIndex: lookups and deletions in writes don't scan.
func TestWritesUseTheirIndex(t *testing.T) {
	d := mustOpen(t, filepath.Join(t.TempDir(), "store.db"), Options{Serve: true})
	pet, _, err := d.CreatePet(t.Context(), animalstore.NewPet{Name: "Rex", CategoryID: 1}, &db.Idempotency{KeyID: 1, Token: "a"})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.PlaceOrder(t.Context(), pet.ID, animalstore.AtMilli(1), nil); err != nil {
		t.Fatal(err)
	}
	change := func(p *animalstore.Pet, ordered bool) error { p.Name = "Max"; return nil }
	if _, err := d.UpdatePet(t.Context(), pet.ID, change); err != nil {
		t.Fatal(err)
	}
	if err := d.DeletePet(t.Context(), pet.ID, change); err != nil {
		t.Fatal(err)
	}
	if _, err := d.UpdateOrder(t.Context(), 1, func(o *animalstore.Order) error { o.Status = animalstore.OrderCancelled; return nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := d.DropIdempotencyRecords(t.Context(), animalstore.AtMilli(1), 5); err != nil {
		t.Fatal(err)
	}
	var written []string
	if err := d.writer.do(t.Context(), func(c *sqlite.Conn) (err error) { written, err = prepared(c); return err }); err != nil {
		t.Fatal(err)
	}
	explained := 0
	for _, query := range written {
		if !strings.Contains(query, "WHERE") {
			continue
		}
		for _, step := range plan(t, d, query) {
			if strings.HasPrefix(step, "SCAN ") || strings.HasPrefix(step, "USE TEMP B-TREE") {
				t.Errorf("%s: %s", query, step)
			}
		}
		explained++
	}
	if explained < 7 {
		t.Errorf("looked at %d statements of the writer, want at least 7: %q", explained, written)
	}
}
