//go:build unix

package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/db/postgres/pgtest"

	"github.com/jackc/pgx/v5"
)

// TestGather: calls that arrive while statements are under way wait for one that begins
// after them, together.
func TestGather(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &DB{timeout: time.Minute, watch: newWatch()}
		defer d.watch.close()
		type statement struct {
			keys []string
			end  chan error
		}
		begun := make(chan statement, 10)
		g := gather[string, string]{run: func(_ context.Context, keys []string) ([]string, error) {
			end := make(chan error)
			begun <- statement{slices.Clone(keys), end}
			values := slices.Clone(keys)
			for i := range values {
				values[i] += "!"
			}
			return values, <-end
		}}
		var calls sync.WaitGroup
		call := func(ctx context.Context, key string, want error) {
			calls.Go(func() {
				got, err := g.value(ctx, d, key)
				if !errors.Is(err, want) || err == nil && got != key+"!" {
					t.Errorf("%s: got %q, %v, want %v", key, got, err, want)
				}
			})
			synctest.Wait()
		}
		begins := func(want ...string) chan error {
			t.Helper()
			time.Sleep(gatherWait) // then it begins beside others
			synctest.Wait()
			if len(begun) != 1 {
				t.Fatalf("%d statements began, want one of %q", len(begun), want)
			}
			got := <-begun
			if !slices.Equal(got.keys, want) {
				t.Fatalf("a statement of %q began, want %q", got.keys, want)
			}
			return got.end
		}
		var first []chan error
		for i := range gatherAtOnce {
			key := fmt.Sprint("first", i)
			call(t.Context(), key, nil)
			first = append(first, begins(key))
		}
		impatient, leave := context.WithCancel(t.Context())
		for _, key := range []string{"a", "b", "a"} {
			call(t.Context(), key, nil)
		}
		call(impatient, "c", context.Canceled)
		leave()
		time.Sleep(2 * gatherPatience)
		if len(begun) > 0 {
			t.Fatal("more statements began than may run at once")
		}
		first[0] <- nil
		second := begins("a", "b", "c")
		call(t.Context(), "b", db.ErrUnavailable) // after the statement of b has begun
		first[1] <- nil
		third := begins("b")
		second <- nil
		third <- db.ErrUnavailable
		for _, end := range first[2:] {
			end <- nil
		}
		calls.Wait()
		synctest.Wait() // a statement ends after its callers have their values
		if g.running != 0 || g.next != nil {
			t.Errorf("%d are running afterwards, want none", g.running)
		}
	})
}

// TestGatherWrites: who gives up before its statement begins has changed nothing. Who
// gives up later, or shares a statement that panics, doesn't get a wrong result.
func TestGatherWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &DB{timeout: time.Minute, watch: newWatch()}
		defer d.watch.close()
		begun, end := make(chan []string, 10), make(chan func())
		g := gather[string, string]{write: true, run: func(_ context.Context, keys []string) ([]string, error) {
			begun <- slices.Clone(keys)
			(<-end)()
			return keys, nil
		}}
		var calls sync.WaitGroup
		call := func(ctx context.Context, key string, want error) {
			calls.Go(func() {
				if got, err := g.value(ctx, d, key); !errors.Is(err, want) || err == nil && got != key {
					t.Errorf("%s: got %q, %v, want %v", key, got, err, want)
				}
			})
			synctest.Wait()
		}
		for i := range gatherAtOnce { // each begins after it has waited for a moment
			call(t.Context(), fmt.Sprint("first", i), nil)
			time.Sleep(2 * gatherWait)
			synctest.Wait()
			<-begun
		}
		early, leaveEarly := context.WithCancel(t.Context())
		late, leaveLate := context.WithCancel(t.Context())
		call(early, "early", context.Canceled)
		call(late, "late", db.ErrOutcomeUnknown)
		call(t.Context(), "patient", nil)
		time.Sleep(2 * gatherPatience)
		leaveEarly()
		synctest.Wait()
		succeed := func() {}
		end <- succeed
		synctest.Wait()
		if got, want := <-begun, []string{"", "late", "patient"}; !slices.Equal(got, want) {
			t.Errorf("a statement of %q began, want %q", got, want)
		}
		leaveLate()
		synctest.Wait()
		for range gatherAtOnce {
			end <- succeed
		}
		calls.Wait()

		for i := range gatherAtOnce {
			call(t.Context(), fmt.Sprint("second", i), nil)
			time.Sleep(2 * gatherWait)
			synctest.Wait()
			<-begun
		}
		calls.Go(func() {
			if _, err := g.value(t.Context(), d, "shared"); err == nil || !strings.Contains(err.Error(), "no such status") {
				t.Errorf("got %v, want the panic", err)
			}
		})
		synctest.Wait()
		end <- succeed
		synctest.Wait()
		for range gatherAtOnce - 1 {
			end <- succeed
		}
		end <- func() { panic("no such status") }
		calls.Wait()
		synctest.Wait()
		if g.running != 0 || g.next != nil {
			t.Errorf("%d are running afterwards, want none", g.running)
		}
	})
}

// TestGatheredReads: a pet is found as soon as it is acknowledged, changed and deleted
// ones are seen as such, and nobody gets what another asked for.
func TestGatheredReads(t *testing.T) {
	t.Parallel()
	d := mustOpen(t, pgtest.Shared(t).NewDatabase(t, ""), Options{Timeout: patient})
	var wg sync.WaitGroup
	for worker := range 24 {
		wg.Go(func() {
			for i := range 25 {
				ctx := db.WithCaller(t.Context(), int64(1+worker%3))
				pet, _, err := d.CreatePet(ctx, animalstore.NewPet{Name: fmt.Sprintf("%d of %d", i, worker), CategoryID: 1}, nil)
				if err != nil {
					t.Error(err)
					return
				}
				if got, err := d.Pet(ctx, pet.ID); err != nil || got != pet {
					t.Errorf("get: got %v, %v, want %v", got, err, pet)
				}
				limit := 1 + (worker+i)%20
				page, err := d.Pets(ctx, db.PetQuery{Before: pet.ID + 1, Limit: limit})
				if err != nil || len(page) == 0 || len(page) > limit || page[0] != pet || !slices.IsSortedFunc(page, func(a, b animalstore.Pet) int { return int(b.ID - a.ID) }) {
					t.Errorf("list before %d of %d: got %v, %v", pet.ID+1, limit, page, err)
				}
				if i%2 == 0 {
					continue
				}
				if err := d.DeletePet(ctx, pet.ID, func(*animalstore.Pet, bool) error { return nil }); err != nil {
					t.Error(err)
				}
				if got, err := d.Pet(ctx, pet.ID); !errors.Is(err, db.ErrNotFound) {
					t.Errorf("get after delete: got %v, %v", got, err)
				}
				first, err := d.Pets(ctx, db.PetQuery{Limit: 50})
				if err != nil || slices.Contains(first, pet) {
					t.Errorf("the first page contains a deleted pet, or %v", err)
				}
			}
		})
	}
	wg.Wait()
}

// TestGatheredCreates: creates that share a statement have the same results as alone.
// Each has its event, and each new category one. One that PostgreSQL refuses fails alone.
func TestGatheredCreates(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	url := server.NewDatabase(t, "")
	d := mustOpen(t, url, Options{Timeout: patient})
	server.MustExec(t, pgtest.Name(url), `CREATE FUNCTION refuse() RETURNS trigger AS $$ BEGIN RAISE 'refused'; END $$ LANGUAGE plpgsql;
		CREATE TRIGGER refuse BEFORE INSERT ON pets FOR EACH ROW WHEN (new.name LIKE 'bad%') EXECUTE FUNCTION refuse()`)
	const callers, each, categories = 48, 20, 7
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
				ctx := db.WithActor(t.Context(), db.Actor{KeyID: caller + 1, RequestID: name})
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
	if err != nil || len(stored) != callers*each-3*5 || len(made) != len(stored) {
		t.Errorf("%d pets are stored and %d were returned, %v, want %d", len(stored), len(made), err, callers*each-3*5)
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

	// The first one to ask for a new category is usually alone, so this asks for two.
	var together []*newPet
	for i := range int64(6) {
		together = append(together, &newPet{animalstore.Pet{Name: "Rex", CategoryID: 100 + i%2, Status: animalstore.PetSold}, db.Actor{KeyID: i}})
	}
	together[3] = nil // its caller gave up
	created, err := d.createPets(t.Context(), together)
	if err != nil || created[3].id != 0 || created[5].id != created[0].id+4 {
		t.Errorf("got %v, %v, want five rising ids", created, err)
	}
	newest, err := d.PublishEvents(t.Context())
	if want := int64(len(events) + 5 + 2); err != nil || newest != want {
		t.Errorf("the newest event is %d, %v, want %d", newest, err, want)
	}
}

// TestReadPet: rows are read alike in both of PostgreSQL's formats.
func TestReadPet(t *testing.T) {
	t.Parallel()
	d := mustOpen(t, pgtest.Shared(t).NewDatabase(t, ""), Options{Timeout: patient})
	var want []animalstore.Pet
	for i, status := range animalstore.PetStatuses {
		pet, _, err := d.CreatePet(t.Context(), animalstore.NewPet{Name: fmt.Sprint("ñ ", i), CategoryID: -5 * int64(i), Status: status}, nil)
		if err != nil {
			t.Fatal(err)
		}
		want = append([]animalstore.Pet{pet}, want...)
	}
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeSimpleProtocol} {
		var got []animalstore.Pet
		err := d.readTogether(t.Context(), "select", func(rows pgx.Rows) error {
			pet, place, err := readPet(rows)
			got = append(got, pet)
			if place != 1 {
				t.Errorf("%s: got place %d, want 1", mode, place)
			}
			return err
		}, listPetPages, mode, []int64{math.MaxInt64}, []int32{10})
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %v, %v, want %v", mode, got, err, want)
		}
	}
}
