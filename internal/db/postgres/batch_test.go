//go:build unix

package postgres

import (
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

// TestBatchedCreates_Slow: of creates that share a statement, one that PostgreSQL refuses fails
// alone, and each caller gets its own pet. A new category has one event.
func TestBatchedCreates_Slow(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	url := server.NewDatabase(t, "")
	d := mustOpen(t, url, Options{Timeout: testenv.Deadline})
	server.MustExec(t, pgtest.Name(url), `CREATE FUNCTION refuse() RETURNS trigger AS $$ BEGIN RAISE 'refused'; END $$ LANGUAGE plpgsql;
		CREATE TRIGGER refuse BEFORE INSERT ON pets FOR EACH ROW WHEN (new.name LIKE 'bad%') EXECUTE FUNCTION refuse()`)
	const callers, each = 32, 10
	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() {
			for i := range each {
				name := fmt.Sprintf("%d of %d", i, caller)
				bad := caller%16 == 0 && i%4 == 0
				if bad {
					name = "bad " + name
				}
				pet, _, err := d.CreatePet(t.Context(), animalstore.NewPet{Name: name, CategoryID: int64(i)}, nil)
				if bad != (err != nil) {
					t.Errorf("%s: got %v", name, err)
				} else if stored, err := d.Pet(t.Context(), pet.ID); !bad && (err != nil || stored != pet || pet.Name != name) {
					t.Errorf("%s: got %+v, stored is %+v, %v", name, pet, stored, err)
				}
			}
		})
	}
	wg.Wait()
	if got := len(names(t, d)); got != callers*each-2*3 {
		t.Errorf("%d pets are stored, want %d", got, callers*each-2*3)
	}
	// The first create in a new category is usually alone in its batch, so this one
	// creates two.
	before := mustPublish(t, d)
	var together []newPet
	for i := range int64(5) {
		together = append(together, newPet{animalstore.Pet{Name: "Rex", CategoryID: 100 + i%2, Status: animalstore.PetSold}, db.Origin{KeyID: i}})
	}
	created, err := d.createPets(t.Context(), together)
	if err != nil || created[4].id != created[0].id+4 {
		t.Errorf("got %v, %v, want five rising ids", created, err)
	}
	if got := mustPublish(t, d) - before; got != 5+2 {
		t.Errorf("got %d events, want 7", got)
	}
}

// mustPublish publishes all events and returns the newest id.
func mustPublish(t *testing.T, d *DB) int64 {
	t.Helper()
	newest, err := d.PublishEvents(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return newest
}

// TestEqualPagesAreReadOnce_Slow: each caller gets its own slice of an equal page.
func TestEqualPagesAreReadOnce_Slow(t *testing.T) {
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
