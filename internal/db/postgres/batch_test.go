//go:build unix

package postgres

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/db/postgres/pgtest"
	"animalstore/internal/testenv"
)

// TestBatchedCreates: creates that share a statement have the same results as alone.
// Each has its event, and each new category one. One that PostgreSQL refuses fails alone.
func TestBatchedCreates(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	url := server.NewDatabase(t, "")
	d := mustOpen(t, url, Options{Timeout: testenv.Deadline})
	server.MustExec(t, pgtest.Name(url), `CREATE FUNCTION refuse() RETURNS trigger AS $$ BEGIN RAISE 'refused'; END $$ LANGUAGE plpgsql;
		CREATE TRIGGER refuse BEFORE INSERT ON pets FOR EACH ROW WHEN (new.name LIKE 'bad%') EXECUTE FUNCTION refuse()`)
	const callers, each, categories = 32, 10, 7
	var mu sync.Mutex
	made := map[int64]animalstore.Pet{}
	var wg sync.WaitGroup
	for caller := range int64(callers) {
		wg.Go(func() {
			for i := range int64(each) {
				name := fmt.Sprintf("%d of %d", i, caller)
				bad := caller%16 == 0 && i%4 == 0
				if bad {
					name = "bad " + name
				}
				ctx := db.WithOrigin(t.Context(), db.Origin{KeyID: caller + 1, RequestID: name})
				pet, _, err := d.CreatePet(ctx, animalstore.NewPet{Name: name, CategoryID: i % categories}, nil)
				if bad != (err != nil) || !bad && (pet.Name != name || pet.CategoryID != i%categories || pet.Status != animalstore.PetAvailable) {
					t.Errorf("%s: got %+v, %v", name, pet, err)
				}
				if err == nil {
					mu.Lock()
					made[pet.ID] = pet
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	stored, err := d.Pets(t.Context(), db.PetQuery{Limit: 2 * callers * each})
	if err != nil || len(stored) != callers*each-2*3 || len(made) != len(stored) {
		t.Errorf("%d pets are stored and %d were returned, %v, want %d", len(stored), len(made), err, callers*each-2*3)
	}
	for _, pet := range stored {
		if made[pet.ID] != pet {
			t.Errorf("stored is %+v, returned was %+v", pet, made[pet.ID])
		}
	}
	if _, err := d.PublishEvents(t.Context()); err != nil {
		t.Fatal(err)
	}
	events, _, err := d.Events(t.Context(), db.EventQuery{Limit: 2 * callers * each})
	if err != nil || len(events) != len(stored)+categories {
		t.Errorf("got %d events, %v, want %d", len(events), err, len(stored)+categories)
	}
	for _, e := range events {
		if e.Type != animalstore.PetCreated {
			continue
		}
		var pet animalstore.Pet
		if err := json.Unmarshal(e.Data, &pet); err != nil || made[pet.ID] != pet || *e.RequestID != pet.Name {
			t.Errorf("an event of %q has %s, want %+v: %v", *e.RequestID, e.Data, made[pet.ID], err)
		}
	}

	// The first create in a new category is usually alone in its batch, so this one
	// creates two.
	var together []newPet
	for i := range int64(5) {
		together = append(together, newPet{animalstore.Pet{Name: "Rex", CategoryID: 100 + i%2, Status: animalstore.PetSold}, db.Origin{KeyID: i}})
	}
	created, err := d.createPets(t.Context(), together)
	if err != nil || created[4].id != created[0].id+4 {
		t.Errorf("got %v, %v, want five rising ids", created, err)
	}
	newest, err := d.PublishEvents(t.Context())
	if want := int64(len(events) + 5 + 2); err != nil || newest != want {
		t.Errorf("the newest event is %d, %v, want %d", newest, err, want)
	}
}

// TestEqualPagesAreReadOnce: each caller gets its own slice of an equal page.
func TestEqualPagesAreReadOnce(t *testing.T) {
	t.Parallel()
	d := mustOpen(t, pgtest.Shared(t).NewDatabase(t, ""), Options{Timeout: testenv.Deadline})
	for range 5 {
		mustCreate(t, d, "Rex")
	}
	page := petPage{math.MaxInt64, 5}
	pages, err := d.petPages(t.Context(), []petPage{page, {math.MaxInt64, 3}, page})
	if err != nil || len(pages) != 3 || len(pages[0]) != 5 || len(pages[1]) != 3 || !slices.Equal(pages[0], pages[2]) {
		t.Fatalf("got %v, %v, want pages of 5, 3 and 5 pets", pages, err)
	}
	if pages[0][0] = (animalstore.Pet{}); pages[2][0] == pages[0][0] {
		t.Error("two callers got the same slice")
	}
}
