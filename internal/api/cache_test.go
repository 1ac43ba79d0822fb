package api_test

import (
	"context"
	"slices"
	"testing"

	"animalstore"
	"animalstore/internal/db"
)

// TestPageCache: a first page is read from the database once, and on PostgreSQL, which
// others write to, every time.
func TestPageCache(t *testing.T) {
	s := start(t)
	s.db.called()
	for range 3 {
		s.do(t, call{path: "/v1/pets"}).want(t, 200, "")
	}
	want := 3
	if engine.name == sqliteEngine.name {
		want = 1
	}
	if got := s.db.called()["Pets"]; got != want {
		t.Errorf("got %d reads, want %d", got, want)
	}
}

// changingDB calls changed after the next list was read, before it is returned.
type changingDB struct {
	*faultyDB
	changed    func()
	committing bool // a change is about to become visible
}

func (d *changingDB) Generation() (generation uint64, stable bool) {
	generation, stable = d.faultyDB.Generation()
	return generation, stable && !d.committing
}

func (d *changingDB) Pets(ctx context.Context, q animalstore.PetQuery, page db.Page) ([]animalstore.Pet, error) {
	pets, err := d.faultyDB.Pets(ctx, q, page)
	if changed := d.changed; changed != nil {
		d.changed = nil
		changed()
	}
	return pets, err
}

// TestCachedPagesAreFresh: a page contains every change that was made before it was
// requested, even one made during the read that might have filled the cache.
func TestCachedPagesAreFresh(t *testing.T) {
	store := &changingDB{}
	s := start(t, func(with *setup) {
		with.wrap = func(f *faultyDB) db.DB { store.faultyDB = f; return store }
	})
	wantNewest := func(name string) {
		t.Helper()
		for range 2 { // read and cached
			for _, path := range []string{"/v1/pets?limit=2", "/v1/pets?limit=2&status=available"} {
				if pets := s.do(t, call{path: path}).pets(t); pets[0].Name != name {
					t.Errorf("%s: got %s first, want %s", path, pets[0].Name, name)
				}
			}
		}
	}
	s.createPet(t, "Rex")
	store.changed = func() { s.createPet(t, "Mia") }
	if got := ids(s.do(t, call{path: "/v1/pets?limit=2"}).pets(t)); !slices.Equal(got, []int64{1}) {
		t.Errorf("got %d, want the pet from before the read", got)
	}
	wantNewest("Mia")
	s.createPet(t, "Max")
	wantNewest("Max")
	s.do(t, patch(petPath(3), `{"name":"Zoe"}`)).want(t, 200, "")
	wantNewest("Zoe")
	s.do(t, remove(petPath(3))).want(t, 204, "")
	wantNewest("Mia")
	store.committing = true
	s.db.called()
	wantNewest("Mia")
	if got := s.db.called()["Pets"]; got != 4 {
		t.Errorf("got %d reads during a commit, want all 4: it may become visible between them", got)
	}
}
