package api_test

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"sync"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/testenv"
)

// inventory returns the counts and their age.
func (s *service) inventory(t testing.TB, query string) (animalstore.Inventory, string) {
	t.Helper()
	got := s.do(t, call{path: "/v1/store/inventory" + query})
	return read[animalstore.Inventory](t, got, http.StatusOK), got.header.Get("Age")
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
	s.clock.Advance(11 * time.Second)
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
		s.clock.Set(begun.Add(step.after))
		for _, query := range []string{"", "?categoryId=7"} {
			if got, age := s.inventory(t, query); got.Available != step.want || age != step.age {
				t.Errorf("after %v, %q: got %+v of age %s, want %d available of age %s", step.after, query, got, age, step.want, step.age)
			}
		}
	}
	// An old count isn't returned, even if there is no new one.
	s.clock.Advance(11 * time.Second)
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
	return nil
}

// waiting reports whether n counts wait for their turn.
func (s *service) waiting(n int) func() bool {
	return func() bool { return s.handler.InventoriesWaiting() == n }
}

// TestInventoryIsCountedOnce: everyone who asks within ten seconds shares one count, and
// counts of different pets run one at a time.
func TestInventoryIsCountedOnce(t *testing.T) {
	t.Parallel()
	s := start(t)
	held := newGate()
	s.db.arm("CountPets", held.pass)
	const callers, categories = 40, 4
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
	testenv.Eventually(t, "all counts wait but one", s.waiting(categories-1))
	close(held.open)
	for range callers {
		if got := <-statuses; got != http.StatusOK {
			t.Errorf("got %d, want 200", got)
		}
	}
	if held.begun != categories || held.most != 1 {
		t.Errorf("got %d counts, %d at once, want %d, one at once", held.begun, held.most, categories)
	}
}

// TestInventoryOfOneWhoLeaves: a count continues for others when the client that caused it
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
	leave()
	<-left
	close(held.open)
	if s.inventory(t, ""); held.begun != 1 {
		t.Errorf("got %d counts, want one", held.begun)
	}
}
