package sqlite

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"animalstore"
	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
)

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
		petsByName     = "SEARCH name_entries USING PRIMARY KEY "
		petOfEntry     = "SEARCH pets USING INTEGER PRIMARY KEY (rowid=?)"
		events         = "SEARCH events USING INTEGER PRIMARY KEY (rowid"
		eventsOfPet    = "SEARCH events USING INDEX events_by_pet (pet_id=? AND rowid"
		eventsOfOne    = "SEARCH events USING INDEX events_by_subject (subject_id=? AND rowid"
		failures       = "SEARCH failures USING INDEX failures_by_"
		oldestFailure  = "SEARCH failures USING COVERING INDEX failures_by_time (time<?)"
		merge          = "USE TEMP B-TREE FOR ORDER BY" // of pages that are limited each
	)
	for query, want := range map[string][]string{
		listPets.All:        {"SEARCH pets USING INTEGER PRIMARY KEY (rowid<?)"},
		listPets.ByStatus:   {"SEARCH pets USING COVERING INDEX pets_by_status (status=? AND id<?)"},
		listPets.ByBoth:     {petsByCategory},
		listPets.ByID:       {petOfEntry},
		listPets.ByCategory: slices.Repeat([]string{petsByCategory, merge}, 3),
		listPet:             {petOfEntry},
		listDeliveries: {
			"SEARCH deliveries USING INTEGER PRIMARY KEY (rowid=?)",
			"SEARCH deliveries USING COVERING INDEX deliveries_by_webhook (webhook_id=? AND state=? AND id<?)", merge,
		},
		listPetsByName:            {petsByName + "(entry=? AND pet_id>?)", petOfEntry, petsByName + "(entry>? AND entry<?)", petOfEntry},
		listEvents:                {events + ">?)"},
		listEventsBefore:          {events + "<?)"},
		listEventsOfPet:           {eventsOfPet + ">?)"},
		listEventsOfPetBefore:     {eventsOfPet + "<?)"},
		listEventsOfSubject:       {eventsOfOne + ">?)"},
		listEventsOfSubjectBefore: {eventsOfOne + "<?)"},
		selectEventTime:           {events + "=?)"},
		countPets:                 slices.Repeat([]string{"SEARCH pets USING COVERING INDEX pets_by_status (status=?)"}, 3),
		countPetsOfCategory:       slices.Repeat([]string{"SEARCH pets USING COVERING INDEX pets_by_category (category_id=? AND status=?)"}, 3),
		listFailures.All:          {"SEARCH failures USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)", oldestFailure},
		listFailures.ByKey:        {failures + "key (key_id=? AND rowid>? AND rowid<?)", oldestFailure},
		listFailures.ByCode:       {failures + "code (code=? AND rowid>? AND rowid<?)", oldestFailure},
		listFailures.ByRequest:    {failures + "request (request_id=? AND rowid>? AND rowid<?)", oldestFailure},
	} {
		if got := plan(t, d, query); !slices.Equal(got, want) {
			t.Errorf("%s\nreads %q\nwant  %q", query, got, want)
		}
	}
}

// TestOrderListsUseTheirIndex is the same for each combination of an order list's filters.
func TestOrderListsUseTheirIndex(t *testing.T) {
	d := newStore(t)
	two := animalstore.OrderStatuses[:2]
	for _, test := range []struct {
		q    animalstore.OrderQuery
		want string
	}{
		{animalstore.OrderQuery{}, "INTEGER PRIMARY KEY (row"},
		{animalstore.OrderQuery{Statuses: animalstore.OrderStatuses}, "INTEGER PRIMARY KEY (row"},
		{animalstore.OrderQuery{Statuses: two[:1]}, "INDEX orders_by_status (status=? AND "},
		{animalstore.OrderQuery{Statuses: two}, "COVERING INDEX orders_by_status (status=? AND "},
		{animalstore.OrderQuery{PetID: 7}, "COVERING INDEX orders_by_pet (pet_id=? AND status=? AND "},
		{animalstore.OrderQuery{PetID: 7, Statuses: two[:1]}, "COVERING INDEX orders_by_pet (pet_id=? AND status=? AND "},
		{animalstore.OrderQuery{Reference: "a"}, "COVERING INDEX orders_by_reference (reference=? AND status=? AND "},
		{animalstore.OrderQuery{Reference: "a", Statuses: two}, "COVERING INDEX orders_by_reference (reference=? AND status=? AND "},
		{animalstore.OrderQuery{PetID: 7, Reference: "a"}, "COVERING INDEX orders_by_pet_reference (pet_id=? AND reference=? AND status=? AND "},
		{animalstore.OrderQuery{PetID: 7, Reference: "a", Statuses: two[:1]}, "COVERING INDEX orders_by_pet_reference (pet_id=? AND reference=? AND status=? AND "},
	} {
		for _, oldest := range []bool{false, true} {
			test.q.Oldest = oldest
			bound := map[bool]string{false: "id<?)", true: "id>?)"}[oldest]
			want := []string{"SEARCH orders USING " + test.want + bound}
			if strings.HasPrefix(test.want, "COVERING") { // of each status, up to the limit
				want = []string{"SEARCH orders USING INTEGER PRIMARY KEY (rowid=?)", want[0], "USE TEMP B-TREE FOR ORDER BY"}
			}
			query, _ := db.OrderStatement(&newestOrders, &oldestOrders, test.q, db.Page{Limit: 20})
			if got := plan(t, d, query); !slices.Equal(got, want) {
				t.Errorf("%s\nreads %q\nwant  %q", query, got, want)
			}
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
	if _, _, err := d.PlaceOrder(t.Context(), animalstore.NewOrder{PetID: pet.ID}, animalstore.AtMilli(1), nil); err != nil {
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
	if err := d.AddFailures(t.Context(), make([]animalstore.Failure, 1), db.FailureLimits{}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.DropFailures(t.Context(), animalstore.AtMilli(1), 5); err != nil {
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
