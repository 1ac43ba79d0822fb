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
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/db/postgres/pgtest"
	"animalstore/internal/fair"
)

// TestBatcher: calls that arrive while a batch runs share the next one, which begins after
// them. It begins beside a slow batch, up to maxBatches at once.
func TestBatcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type running struct {
			reqs []string
			end  chan error
		}
		begun := make(chan running, 10)
		b := batcher[string, string]{timeout: time.Minute, run: func(_ context.Context, reqs []string) ([]string, error) {
			end := make(chan error)
			begun <- running{reqs, end}
			results := slices.Clone(reqs)
			for i := range results {
				results[i] += "!"
			}
			return results, <-end
		}}
		var calls sync.WaitGroup
		call := func(req string, want error) {
			calls.Go(func() {
				got, err := b.do(t.Context(), req)
				if !errors.Is(err, want) || err == nil && got != req+"!" {
					t.Errorf("%s: got %q, %v, want %v", req, got, err, want)
				}
			})
			synctest.Wait()
		}
		begins := func(want ...string) chan error {
			t.Helper()
			synctest.Wait()
			if len(begun) != 1 {
				t.Fatalf("%d batches began, want one of %q", len(begun), want)
			}
			got := <-begun
			if !slices.Equal(got.reqs, want) {
				t.Fatalf("a batch of %q began, want %q", got.reqs, want)
			}
			return got.end
		}
		call("first", nil)
		first := begins("first")
		call("a", nil)
		call("b", nil)
		call("a", nil)
		first <- nil
		second := begins("a", "b", "a")
		second <- nil
		synctest.Wait()

		var ends []chan error
		for i := range maxBatches {
			req := fmt.Sprint("slow ", i)
			call(req, db.ErrUnavailable)
			ends = append(ends, begins(req))
			time.Sleep(2 * slowBatch)
		}
		call("late", nil)
		if len(begun) > 0 {
			t.Fatal("more batches run than may at once")
		}
		for _, end := range ends {
			end <- db.ErrUnavailable
		}
		begins("late") <- nil
		calls.Wait()
		synctest.Wait()
		if b.running != 0 || len(b.waiting) != 0 {
			t.Errorf("%d batches run and %d calls wait afterwards, want none", b.running, len(b.waiting))
		}
	})
}

// TestBatcherGivesUp: a caller that gives up before its batch begins isn't part of it.
// Later it learns that the batch has begun. A panic is returned to every caller.
func TestBatcherGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, end := make(chan []string, 10), make(chan func())
		b := batcher[string, string]{timeout: time.Minute, run: func(_ context.Context, reqs []string) ([]string, error) {
			begun <- reqs
			(<-end)()
			return reqs, nil
		}}
		var calls sync.WaitGroup
		call := func(ctx context.Context, req string, check func(error) bool) {
			calls.Go(func() {
				if got, err := b.do(ctx, req); !check(err) || err == nil && got != req {
					t.Errorf("%s: got %q, %v", req, got, err)
				}
			})
			synctest.Wait()
		}
		succeeds := func(err error) bool { return err == nil }
		early, leaveEarly := context.WithCancel(t.Context())
		late, leaveLate := context.WithCancel(t.Context())
		call(t.Context(), "first", succeeds)
		<-begun
		call(early, "early", func(err error) bool { return errors.Is(err, context.Canceled) && !errors.Is(err, errBegun) })
		call(late, "late", func(err error) bool { return errors.Is(err, context.Canceled) && errors.Is(err, errBegun) })
		call(t.Context(), "patient", succeeds)
		leaveEarly()
		synctest.Wait()
		end <- func() {}
		if got, want := <-begun, []string{"late", "patient"}; !slices.Equal(got, want) {
			t.Errorf("a batch of %q began, want %q", got, want)
		}
		leaveLate()
		synctest.Wait()
		end <- func() {}
		calls.Wait()

		call(t.Context(), "shared", func(err error) bool { return err != nil && strings.Contains(err.Error(), "no such status") })
		end <- func() { panic("no such status") }
		calls.Wait()
		synctest.Wait()
		if b.running != 0 {
			t.Errorf("%d batches run afterwards, want none", b.running)
		}
	})
}

// TestBatcherTimeout: a call waits no longer than its timeout, for the batches before it
// and for its own together.
func TestBatcherTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		b := batcher[string, string]{timeout: 2 * time.Second, run: func(_ context.Context, reqs []string) ([]string, error) {
			<-end
			return reqs, nil
		}}
		var calls sync.WaitGroup
		for n := range maxBatches + 1 {
			calls.Go(func() {
				begun := time.Now()
				_, err := b.do(t.Context(), "slow")
				if took := time.Since(begun); took != 2*time.Second || !errors.Is(err, errLate) {
					t.Errorf("call %d: got %v after %v, want %v after 2s", n, err, took, errLate)
				}
				if running := n < maxBatches; errors.Is(err, errBegun) != running {
					t.Errorf("call %d: got %v, want that it has begun: %t", n, err, running)
				}
			})
			time.Sleep(2 * slowBatch) // so that each begins a batch, until there are enough
		}
		calls.Wait()
		close(end)
	})
}

// TestBatcherEndedContext: a call whose context has ended isn't run.
func TestBatcherEndedContext(t *testing.T) {
	var ran atomic.Int64
	b := batcher[string, string]{timeout: time.Minute, run: func(_ context.Context, reqs []string) ([]string, error) {
		ran.Add(int64(len(reqs)))
		return reqs, nil
	}}
	ended, end := context.WithCancel(t.Context())
	end()
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() {
			for range 5000 { // a worker seldom takes the call before its caller leaves
				if _, err := b.do(ended, "late"); !errors.Is(err, context.Canceled) || errors.Is(err, errBegun) {
					t.Errorf("got %v, want that it was cancelled", err)
					return
				}
			}
		})
	}
	calls.Wait()
	if n := ran.Load(); n > 0 {
		t.Errorf("%d calls were run, want none", n)
	}
}

// TestBatchedReads: a pet is found as soon as it is acknowledged, changed and deleted
// ones are seen as such, and nobody gets what another asked for.
func TestBatchedReads(t *testing.T) {
	t.Parallel()
	d := mustOpen(t, pgtest.Shared(t).NewDatabase(t, ""), Options{Timeout: patient})
	var wg sync.WaitGroup
	for worker := range 24 {
		wg.Go(func() {
			for i := range 25 {
				ctx := fair.WithCaller(t.Context(), int64(1+worker%3))
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

	// Equal pages are read once, but each caller gets its own.
	page := petPage{math.MaxInt64, 5}
	pages, err := d.petPages(t.Context(), []petPage{page, {math.MaxInt64, 3}, page})
	if err != nil || len(pages) != 3 || len(pages[0]) != 5 || len(pages[1]) != 3 || !slices.Equal(pages[0], pages[2]) {
		t.Fatalf("got %v, %v, want pages of 5, 3 and 5 pets", pages, err)
	}
	if pages[0][0] = (animalstore.Pet{}); pages[2][0] == pages[0][0] {
		t.Error("two callers got the same slice")
	}
}

// TestBatchedCreates: creates that share a statement have the same results as alone.
// Each has its event, and each new category one. One that PostgreSQL refuses fails alone.
func TestBatchedCreates(t *testing.T) {
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

	// The first create in a new category is usually alone in its batch, so this one
	// creates two.
	var together []newPet
	for i := range int64(5) {
		together = append(together, newPet{animalstore.Pet{Name: "Rex", CategoryID: 100 + i%2, Status: animalstore.PetSold}, db.Actor{KeyID: i}})
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
