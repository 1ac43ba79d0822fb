package sqlite

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"animalstore"
	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
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

// plan returns how a query reads its tables, and whether it sorts.
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
			step := stmt.GetText("detail")
			reads := strings.HasPrefix(step, "SEARCH ") || strings.HasPrefix(step, "SCAN ")
			if reads && !strings.Contains(step, "subquery") && !strings.Contains(step, "json_each") && step != "SCAN CONSTANT ROW" || strings.HasPrefix(step, "USE TEMP B-TREE") {
				steps = append(steps, step)
			}
		}
	})
	if err != nil {
		t.Fatalf("explain %s: %v", query, err)
	}
	return steps
}

// TestReadsUseTheirIndex: every list and count is read from one index, from its first row
// to its last, so that it costs the same however large the store is.
func TestReadsUseTheirIndex(t *testing.T) {
	d := newStore(t)
	const (
		petsByCategory = "SEARCH pets USING COVERING INDEX pets_by_category (category_id=? AND status=? AND id<?)"
		ordersByPet    = "SEARCH orders USING COVERING INDEX orders_by_pet (pet_id=? AND status=? AND id<?)"
		petsByName     = "SEARCH pets USING COVERING INDEX pets_by_name "
		events         = "SEARCH events USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"
		eventsOfOne    = "SEARCH events USING INDEX events_by_subject (subject_id=? AND rowid>? AND rowid<?)"
		merge          = "USE TEMP B-TREE FOR ORDER BY" // of pages that are limited each
	)
	for query, want := range map[string][]string{
		listPets:            {"SEARCH pets USING INTEGER PRIMARY KEY (rowid<?)"},
		listPetsByStatus:    {"SEARCH pets USING COVERING INDEX pets_by_status (status=? AND id<?)"},
		listPetsByBoth:      {petsByCategory},
		listPetsByID:        {"SEARCH pets USING INTEGER PRIMARY KEY (rowid=?)"},
		listPetsByCategory:  slices.Repeat([]string{petsByCategory, merge}, 3),
		listPetsByName:      {petsByName + "(folded_name=? AND id>?)", petsByName + "(folded_name>? AND folded_name<?)"},
		listOrders:          {"SEARCH orders USING INTEGER PRIMARY KEY (rowid<?)"},
		listOrdersByStatus:  {"SEARCH orders USING COVERING INDEX orders_by_status (status=? AND id<?)"},
		listOrdersByBoth:    {ordersByPet},
		listOrdersByPet:     slices.Repeat([]string{ordersByPet, merge}, 4),
		listEvents:          {events},
		eventsBefore:        {events},
		listEventsBySubject: {eventsOfOne},
		subjectEventsBefore: {eventsOfOne},
		countPets:           slices.Repeat([]string{"SEARCH pets USING COVERING INDEX pets_by_status (status=?)"}, 3),
		countPetsOfCategory: slices.Repeat([]string{"SEARCH pets USING COVERING INDEX pets_by_category (category_id=? AND status=?)"}, 3),
	} {
		if got := plan(t, d, query); !slices.Equal(got, want) {
			t.Errorf("%s\nreads %q\nwant  %q", query, got, want)
		}
	}
}

// TestWritesUseTheirIndex: lookups and deletions in writes don't scan.
func TestWritesUseTheirIndex(t *testing.T) {
	d := newStore(t)
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
	err = d.writer.do(t.Context(), func(c *sqlite.Conn) error {
		for _, query := range reflect.ValueOf(c).Elem().FieldByName("stmts").MapKeys() { // what the driver has prepared
			written = append(written, query.String())
		}
		return nil
	})
	if err != nil || len(written) == 0 {
		t.Fatalf("the writer has prepared %q, %v", written, err)
	}
	for _, query := range written {
		if !strings.Contains(query, "WHERE") {
			continue
		}
		for _, step := range plan(t, d, query) {
			if strings.HasPrefix(step, "SCAN ") || strings.HasPrefix(step, "USE TEMP B-TREE") {
				t.Errorf("%s: %s", query, step)
			}
		}
	}
}
