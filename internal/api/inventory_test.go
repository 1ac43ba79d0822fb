package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"animalstore"
	"animalstore/internal/api"
	"animalstore/internal/db"
)

// inventory returns the counts and their age.
func (s *service) inventory(t testing.TB, query string) (animalstore.Inventory, string) {
	t.Helper()
	got := s.do(t, call{path: "/v1/store/inventory" + query})
	var inventory animalstore.Inventory
	if err := json.Unmarshal(got.body, &inventory); err != nil || got.status != http.StatusOK {
		t.Fatalf("got %v, want an inventory (%v)", got, err)
	}
	return inventory, got.header.Get("Age")
}

func TestInventory(t *testing.T) {
	t.Parallel()
	s := start(t)
	got := s.do(t, call{path: "/v1/store/inventory"})
	if want := `{"available":0,"pending":0,"sold":0}` + "\n"; string(got.body) != want {
		t.Errorf("an empty store: got %q, want %q", got.body, want)
	}
	for i, n := range []int{3, 2, 1} {
		for range n {
			s.add(t, animalstore.NewPet{Name: "Rex", CategoryID: math.MinInt64, Status: animalstore.PetStatuses[i]},
				animalstore.NewPet{Name: "Mia", CategoryID: 7, Status: animalstore.PetSold})
		}
	}
	s.clock.advance(11 * time.Second)
	for query, want := range map[string]animalstore.Inventory{
		"":                                 {Available: 3, Pending: 2, Sold: 7},
		"?categoryId=7":                    {Sold: 6},
		"?categoryId=-9223372036854775808": {Available: 3, Pending: 2, Sold: 1},
		"?categoryId=0":                    {},
		"?categoryId=9223372036854775807&unknown=1&unknown=2": {},
	} {
		if got, age := s.inventory(t, query); got != want || age != "0" {
			t.Errorf("%q: got %+v of age %s, want %+v of age 0", query, got, age, want)
		}
	}
	head := s.do(t, call{method: http.MethodHead, path: "/v1/store/inventory?categoryId=7"})
	if head.status != http.StatusOK || len(head.body) != 0 || head.header.Get("Age") != "0" || head.header.Get("Content-Length") != "37" {
		t.Errorf("HEAD: got %v %v, want the header of a GET", head, head.header)
	}
	same := s.do(t, call{path: "/v1/store/inventory?categoryId=7", header: http.Header{"If-None-Match": {head.header.Get("ETag")}}})
	if same.status != http.StatusNotModified || same.header.Get("Age") != "0" {
		t.Errorf("If-None-Match: got %v %v, want 304 with its age", same, same.header)
	}
	s.do(t, call{path: "/v1/store/inventory", key: s.key(t, animalstore.Write)}).want(t, http.StatusForbidden, animalstore.InsufficientPermission)
	s.do(t, call{path: "/v1/store/inventory", header: http.Header{"If-Match": {`"x"`}}}).want(t, http.StatusPreconditionFailed, animalstore.PreconditionFailed)
	for _, query := range []string{"categoryId=", "categoryId=cats", "categoryId=1.0", "categoryId=07", "categoryId=%2B7", "categoryId=9223372036854775808", "categoryId=7&categoryId=7"} {
		got := s.do(t, call{path: "/v1/store/inventory?" + query, bad: true})
		got.want(t, http.StatusBadRequest, animalstore.InvalidParameter)
		got.wantMessage(t, "categoryId", "64-bit integer", "once")
	}
	s.do(t, call{path: "/v1/store/inventory?categoryId=%zz", bad: true}).want(t, http.StatusBadRequest, animalstore.InvalidParameter)
}

// TestInventoryAge: counts are kept for ten seconds, and never longer.
func TestInventoryAge(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.inventory(t, "")
	s.inventory(t, "?categoryId=7")
	s.add(t, animalstore.NewPet{Name: "Rex", CategoryID: 7})
	for _, step := range []struct {
		after time.Duration
		want  int64
		age   string
	}{
		{999 * time.Millisecond, 0, "0"},
		{6500 * time.Millisecond, 0, "6"},
		{10 * time.Second, 0, "10"},
		{10*time.Second + time.Millisecond, 1, "0"},
	} {
		begun := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
		s.clock.set(begun.Add(step.after))
		for _, query := range []string{"", "?categoryId=7"} {
			if got, age := s.inventory(t, query); got.Available != step.want || age != step.age {
				t.Errorf("after %v, %q: got %+v of age %s, want %d available of age %s", step.after, query, got, age, step.want, step.age)
			}
		}
	}
	// An old count isn't returned, even if there is no new one.
	s.clock.advance(11 * time.Second)
	s.db.arm("CountPets", failWith(db.ErrUnavailable))
	got := s.do(t, call{path: "/v1/store/inventory"})
	got.want(t, http.StatusServiceUnavailable, animalstore.Unavailable)
	if got.header.Get("Retry-After") != "1" || got.header.Get("Age") != "" {
		t.Errorf("got header %v, want Retry-After and no age", got.header)
	}
	s.db.arm("CountPets", nil)
	if got, age := s.inventory(t, ""); got.Available != 1 || age != "0" {
		t.Errorf("after the failure: got %+v of age %s, want one available of age 0", got, age)
	}
}

// gate holds counts up. It counts them, and how many of them run at once.
type gate struct {
	mu          sync.Mutex
	begun       int
	running     int
	most        int
	open        chan struct{} // lets all counts go on once it is closed
	failing     error
	firstInside chan struct{} // closed when the first count began
}

func newGate() *gate { return &gate{open: make(chan struct{}), firstInside: make(chan struct{})} }

func (g *gate) pass(context.Context) error {
	g.mu.Lock()
	g.begun++
	g.running++
	g.most = max(g.most, g.running)
	if g.begun == 1 {
		close(g.firstInside)
	}
	g.mu.Unlock()
	<-g.open
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running--
	return g.failing
}

// waiting reports whether n requests wait for their turn to count.
func (s *service) waiting(n int) func() bool {
	return func() bool { return s.handler.InventoriesWaiting() == n }
}

// TestInventoryIsCountedOnce: concurrent requests share one count, and counts of
// different pets run one at a time.
func TestInventoryIsCountedOnce(t *testing.T) {
	t.Parallel()
	for _, failing := range []error{nil, db.ErrUnavailable} {
		s := start(t)
		held := newGate()
		held.failing = failing
		s.db.arm("CountPets", held.pass)
		const callers, categories = 200, 4
		statuses := make(chan int, callers)
		for i := range callers {
			go func() {
				got, err := s.inProcess().send(t.Context(), call{path: fmt.Sprint("/v1/store/inventory?categoryId=", i%categories)})
				if err != nil {
					t.Error(err)
				}
				statuses <- got.status
			}()
		}
		eventually(t, "all requests wait but one, which counts", s.waiting(callers-1))
		close(held.open)
		want := http.StatusOK
		if failing != nil {
			want = http.StatusServiceUnavailable
		}
		for range callers {
			if got := <-statuses; got != want {
				t.Errorf("got %d, want %d", got, want)
			}
		}
		if held.begun != categories || held.most != 1 {
			t.Errorf("with error %v: got %d counts, %d at once, want %d, one at once", failing, held.begun, held.most, categories)
		}
	}
}

// TestInventoryOfOneWhoLeaves: a count goes on for others when the client that caused it
// disconnects.
func TestInventoryOfOneWhoLeaves(t *testing.T) {
	t.Parallel()
	s := start(t)
	held := newGate()
	s.db.arm("CountPets", held.pass)
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan struct{})
	go func() {
		s.inProcess().send(ctx, call{path: "/v1/store/inventory"}) // returns when its handler does
		close(left)
	}()
	<-held.firstInside
	stays := make(chan response)
	go func() {
		got, err := s.send(t.Context(), call{path: "/v1/store/inventory"})
		if err != nil {
			t.Error(err)
		}
		stays <- got
	}()
	eventually(t, "the other waits", s.waiting(1))
	leave()
	<-left
	close(held.open)
	if got := <-stays; got.status != http.StatusOK || held.begun != 1 {
		t.Errorf("got %v after %d counts, want 200 after one", got, held.begun)
	}
}

// TestInventoryTakesTurns: a key that asks for many categories delays another key by one
// count.
func TestInventoryTakesTurns(t *testing.T) {
	t.Parallel()
	s := start(t)
	held := newGate()
	s.db.arm("CountPets", held.pass)
	const many = 50
	var all sync.WaitGroup
	for i := range many {
		all.Go(func() {
			if got, err := s.send(t.Context(), call{path: fmt.Sprint("/v1/store/inventory?categoryId=", i)}); err != nil || got.status != http.StatusOK {
				t.Errorf("got %v, %v, want 200", got, err)
			}
		})
	}
	eventually(t, "the many wait", s.waiting(many-1))
	// From now on, the counts are let through one by one.
	step := make(chan struct{})
	s.db.arm("CountPets", func(context.Context) error {
		<-step
		return nil
	})
	done := make(chan response, 1)
	go func() {
		got, err := s.send(t.Context(), call{path: "/v1/store/inventory", key: s.admin})
		if err != nil {
			t.Error(err)
		}
		done <- got
	}()
	eventually(t, "the other waits too", s.waiting(many))
	close(held.open) // ends the first count
	for range 2 {    // another of the many, and the other's
		step <- struct{}{}
	}
	select {
	case got := <-done:
		got.want(t, http.StatusOK, "")
	case <-time.After(time.Minute):
		t.Error("got no response after two more counts, want one")
	}
	close(step)
	all.Wait()
}

// TestInventoryGoesOn: a count that takes longer than its request may wait serves later
// requests, unless it takes so long that it would be too old.
func TestInventoryGoesOn(t *testing.T) {
	sqliteOnly(t, "it uses no database")
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for takes, want := range map[time.Duration]struct {
			age  time.Duration
			made int64
		}{
			7 * time.Second:  {8 * time.Second, 1},
			13 * time.Second: {0, 2},
		} {
			first := takes
			var slow countFunc = func(ctx context.Context) error {
				time.Sleep(first)
				first = 0
				return ctx.Err()
			}
			counts := api.NewInventories(slow, time.Now)
			ctx, cancel := context.WithTimeout(t.Context(), api.HandlerTimeout)
			defer cancel()
			if _, err := counts.Get(ctx, 7); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, want the deadline", err)
			}
			time.Sleep(takes + time.Second - api.HandlerTimeout)
			if age, err := counts.Get(t.Context(), 7); err != nil || age != want.age || counts.Made() != want.made {
				t.Errorf("got age %v, %v after %d counts, want %v after %d", age, err, counts.Made(), want.age, want.made)
			}
		}
	})
}

// TestInventoriesAreBounded: asking for any number of categories takes a limited amount of
// memory, and those counted last are kept.
func TestInventoriesAreBounded(t *testing.T) {
	sqliteOnly(t, "it uses no database")
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var noPets countFunc = func(context.Context) error { return nil }
		counts := api.NewInventories(noPets, time.Now)
		for i := range int64(api.MaxInventories + 500) {
			if _, err := counts.Get(t.Context(), i); err != nil {
				t.Fatal(err)
			}
		}
		if kept, made := counts.Kept(), counts.Made(); kept != api.MaxInventories || made != api.MaxInventories+500 {
			t.Errorf("got %d kept of %d, want %d of %d", kept, made, api.MaxInventories, api.MaxInventories+500)
		}
		for i := int64(500); i < api.MaxInventories+500; i++ {
			counts.Get(t.Context(), i)
		}
		if made := counts.Made(); made != api.MaxInventories+500 {
			t.Errorf("the latest: got %d counts, want none again", made-api.MaxInventories-500)
		}
		time.Sleep(11 * time.Second)
		for range 3 * api.MaxInventories { // the same one, again and again
			counts.Get(t.Context(), 1000)
			time.Sleep(11 * time.Second)
		}
		if kept := counts.Kept(); kept != 1 {
			t.Errorf("got %d kept, want one", kept)
		}
	})
}

// TestCountsAreRead: a count of few pets among many takes few reads, one of many pets short
// ones, and on a slow machine it doesn't take ever more.
func TestCountsAreRead(t *testing.T) {
	sqliteOnly(t, "it uses no database")
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			perPet              time.Duration
			one                 int64 // pet in this many ids
			atMost              int   // reads
			longest, altogether time.Duration
		}{
			{100 * time.Nanosecond, 1, 300, 4 * time.Millisecond, 2 * time.Second},
			{100 * time.Nanosecond, 10_000, 24, 4 * time.Millisecond, 100 * time.Millisecond},
			{time.Microsecond, 1, 260, 20 * time.Millisecond, 6 * time.Second},
		} {
			d := &countedStore{perPet: c.perPet, one: c.one}
			began := time.Now()
			if _, err := api.NewInventories(d, time.Now).Get(t.Context(), 7); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); d.reads > c.atMost || d.longest > c.longest || took > c.altogether {
				t.Errorf("%+v: got %d reads of up to %v in %v", c, d.reads, d.longest, took)
			}
		}
	})
}

// countedStore has five million pets, of which a part is in the category.
type countedStore struct {
	perPet  time.Duration
	one     int64
	reads   int
	longest time.Duration
}

func (s *countedStore) CountPets(_ context.Context, q db.CountQuery) (animalstore.Inventory, int64, error) {
	const pets = 5_000_000
	takes := time.Duration((min(q.Last(), pets)-q.From)/s.one) * s.perPet
	time.Sleep(takes)
	s.reads++
	s.longest = max(s.longest, takes)
	if q.Last() >= pets {
		return animalstore.Inventory{}, 0, nil
	}
	return animalstore.Inventory{}, q.Last() + 1, nil
}

// countFunc is a database without pets. It is called for each count.
type countFunc func(context.Context) error

func (f countFunc) CountPets(ctx context.Context, _ db.CountQuery) (animalstore.Inventory, int64, error) {
	return animalstore.Inventory{}, 0, f(ctx)
}
