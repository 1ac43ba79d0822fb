package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db/postgres/pgtest"
	"animalstore/internal/testenv"
)

// instance is one of several servers on one database. Its address stays the same while
// its process is restarted.
type instance struct {
	*server // the current process
	address string
	options []option
	// up is the number of times it came up, negative while it is down.
	up atomic.Int64
}

// onEachEngine runs a test with one instance on SQLite, and with three instances on
// PostgreSQL.
func onEachEngine(t *testing.T, test func(t *testing.T, database string, instances int)) {
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		test(t, newDatabase(t), 1)
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		test(t, pgtest.Shared(t).NewDatabase(t, ""), 3)
	})
}

// startInstances starts n servers on a database, each on an address that it keeps after
// a restart.
func startInstances(t testing.TB, n int, database string, options ...option) []*instance {
	t.Helper()
	all := make([]*instance, n)
	for i := range all {
		all[i] = &instance{address: pgtest.FreeAddress(t), options: options}
		all[i].start(t, database)
	}
	return all
}

func (in *instance) start(t testing.TB, database string) {
	t.Helper()
	in.server = start(t, append(slices.Clone(in.options), onDatabase(database), onAddress(in.address))...)
	in.up.Store(max(in.up.Load(), -in.up.Load()) + 1)
}

// goDown must be called before an instance is stopped.
func (in *instance) goDown() { in.up.Store(-in.up.Load()) }

// wasUp reports whether the instance has been up the whole time since then.
func (in *instance) wasUp(then int64) bool { return then > 0 && in.up.Load() == then }

// shoppers are clients of several instances that add pets, each with an
// Idempotency-Key. They send it again to another instance until they get the response.
type shoppers struct {
	t         *testing.T
	instances []*instance
	key       string
	// tolerate are the codes of 503 responses after which they try again.
	tolerate []string
	pause    time.Duration // of each client, between pets
	stale    time.Duration // how long other instances may not have a pet yet

	acknowledged, retried atomic.Int64
	by                    []*moments // when each instance acknowledged

	stopping atomic.Bool
	all      sync.WaitGroup
	changes  changes
	mu       sync.Mutex
	pets     *ledger
}

// pause is how long a client waits between requests in tests that aren't about load,
// because other tests need the processor too.
const pause = 10 * time.Millisecond

func newShoppers(t *testing.T, instances []*instance, key string, tolerate ...string) *shoppers {
	s := &shoppers{t: t, instances: instances, key: key, tolerate: tolerate, pause: pause, pets: newLedger()}
	for range instances {
		s.by = append(s.by, &moments{})
	}
	return s
}

func startShoppers(t *testing.T, instances []*instance, key string, clients int, tolerate ...string) *shoppers {
	t.Helper()
	s := newShoppers(t, instances, key, tolerate...)
	s.start(clients)
	return s
}

func (s *shoppers) start(clients int) {
	s.t.Helper()
	for i := range clients {
		var to []*client
		for _, in := range s.instances {
			to = append(to, newClient(s.t, in.server, s.key))
		}
		s.all.Go(func() {
			for n := 0; !s.stopping.Load(); n++ {
				s.shop(to, i, n)
				time.Sleep(s.pause)
			}
		})
	}
}

// shop adds one pet, and looks for it on another instance.
func (s *shoppers) shop(to []*client, i, n int) {
	want := pet{Name: fmt.Sprintf("shopper %d, number %d", i, n), CategoryID: int64(n % 5), Status: "available"}
	body, token := newPetBody(want.Name, want.CategoryID, want.Status), fmt.Sprintf("%d-%d", i, n)
	s.changes.send(want.Name)
	for attempt := 0; ; attempt++ {
		k := (i + n + attempt) % len(to)
		up := s.instances[k].up.Load()
		a, err := to[k].try("POST", "/v1/pets", body, "Idempotency-Key", token)
		switch {
		case err == nil && a.status == 201:
			got, err := decodePet(a.body)
			if want.ID = got.ID; err != nil || got != want {
				s.t.Errorf("sent %+v, got 201 %s", want, a.body)
			}
			s.mu.Lock()
			if err := s.pets.add(got); err != nil {
				s.t.Error(err)
			}
			s.mu.Unlock()
			s.acknowledged.Add(1)
			s.by[k].add()
			s.changes.acknowledge(nil, animalstore.PetCreated, got.ID, got.Name)
			s.look(to, (k+1)%len(to), got)
			return
		case err == nil && !s.tolerates(a):
			s.t.Errorf("instance %d: sent %s, got %d %s", k, body, a.status, a.body)
			return
		case err != nil && s.instances[k].wasUp(up):
			s.t.Errorf("instance %d, which was up: %v", k, err)
			return
		}
		s.retried.Add(1)
		time.Sleep(retryPause(a))
	}
}

// retryPause is as long as a response with 503 asks for: at most a second.
func retryPause(a response) time.Duration {
	if a.status == 503 && a.header.Get("Retry-After") != "" {
		return time.Second
	}
	return pause
}

// look fails the test if an instance that is up doesn't have a pet.
func (s *shoppers) look(to []*client, k int, want pet) {
	up := s.instances[k].up.Load()
	for begun := time.Now(); ; time.Sleep(pause) {
		a, err := to[k].try("GET", fmt.Sprint("/v1/pets?id=", want.ID), "")
		missing := err == nil && a.status == 200 && !strings.Contains(a.body, fmt.Sprintf(`"id":%d,`, want.ID))
		switch {
		case err != nil && s.instances[k].wasUp(up):
			s.t.Errorf("instance %d, which was up: %v", k, err)
		case missing && time.Since(begun) < s.stale:
			continue
		case missing:
			s.t.Errorf("instance %d doesn't have %+v, acknowledged %s ago: %s", k, want, time.Since(begun), a.body)
		case err == nil && a.status != 200 && !s.tolerates(a):
			s.t.Errorf("instance %d: got %d %s, want the pet", k, a.status, a.body)
		}
		return
	}
}

func (s *shoppers) tolerates(a response) bool {
	for _, code := range s.tolerate {
		if a.status == 503 && strings.Contains(a.body, `"code":"`+code+`"`) {
			return true
		}
	}
	return false
}

// awaitMore waits until n more pets are acknowledged.
func (s *shoppers) awaitMore(n int64) {
	s.t.Helper()
	before := s.acknowledged.Load()
	testenv.Eventually(s.t, "more is acknowledged", func() bool { return s.acknowledged.Load() >= before+n })
}

// awaitEach waits until every instance has acknowledged another change.
func (s *shoppers) awaitEach(t *testing.T) {
	t.Helper()
	begun := time.Now()
	for i, m := range s.by {
		testenv.Eventually(t, fmt.Sprintf("instance %d acknowledges a change", i), func() bool { return m.last().After(begun) })
	}
}

// stop ends the load and checks that every pet is stored once, exactly as acknowledged.
func (s *shoppers) stop() {
	s.t.Helper()
	s.stopping.Store(true)
	s.all.Wait()
	stored := newClient(s.t, s.instances[0].server, s.key).allPets(s.t, 0)
	if n, which := s.pets.missing(stored, 0); n > 0 {
		s.t.Errorf("%d of %d acknowledged pets are lost or changed, such as %q", n, len(s.pets.pets), which)
	}
	if len(stored) != len(s.pets.pets) {
		s.t.Errorf("got %d pets stored, want the %d acknowledged ones, each once", len(stored), len(s.pets.pets))
	}
}

// TestRestarts_Slow kills and stops instances under load. No write is lost or made twice, and
// clients of the other instances don't notice.
func TestRestarts_Slow(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, database string, count int) {
		instances := startInstances(t, count, database)
		load := startShoppers(t, instances, adminKey(t, database), 8, "shutting_down")
		for round := range testenv.Count(4, 200) {
			victim := instances[round%len(instances)]
			load.awaitMore(int64(20 + round%3*10)) // a different moment in each round
			victim.goDown()
			if round%2 == 0 {
				victim.kill()
			} else {
				victim.stop()
			}
			if count > 1 {
				load.awaitMore(20)
			}
			victim.start(t, database)
		}
		load.awaitMore(20)
		load.stop()
		if load.retried.Load() == 0 {
			t.Error("nothing had to be sent again: the test proves nothing")
		}
	})
}

// startPair starts PostgreSQL with a synchronous standby. The URL leads to a database
// on whichever of them accepts writes.
func startPair(t *testing.T) (primary, standby *pgtest.Server, database string) {
	primary = pgtest.Start(t)
	primary.MustExec(t, "postgres", "CREATE DATABASE store")
	standby = primary.Standby(t)
	both := strings.Replace(primary.URL("store"), primary.Address(), primary.Address()+","+standby.Address(), 1)
	return primary, standby, both + "&target_session_attrs=read-write"
}

// TestClusterFailover kills the PostgreSQL server that all instances write to and
// promotes its synchronous standby. No acknowledged write is lost or made twice, copies that
// follow the events equal the store, and no instance is restarted.
func TestClusterFailover(t *testing.T) {
	testenv.OnlySoak(t, "starts PostgreSQL and its standby 20 times")
	t.Parallel()
	primary, standby, database := startPair(t)
	instances := startInstances(t, 3, database)
	key := adminKey(t, database)
	f := follow(t, 9, urlsOf(instances), key)
	load := startShoppers(t, instances, key, 8, "unavailable")
	h := newHistory(t, instances, key, f, &load.changes)
	for round := range 20 {
		load.awaitMore(int64(40 + round%3*10))
		before := load.retried.Load()
		primary.Kill()
		if round%2 == 0 {
			// Otherwise the standby may be promoted so soon that no client notices.
			testenv.Eventually(t, "a client has to send again", func() bool { return load.retried.Load() > before })
		}
		standby.Promote(t)
		load.awaitMore(20)
		// The former primary comes back as the standby.
		primary.Follow(t, standby)
		primary, standby = standby, primary
		h.check(t)
	}
	load.awaitMore(20)
	load.stop()
	h.finish(t)
	for _, in := range instances {
		if in.ended() {
			t.Errorf("an instance has ended:\n%s", in.output())
		}
	}
}

// TestFrozenPrimary: the PostgreSQL primary stops responding without closing a
// connection, and its standby is promoted. The server, which has a pool of open
// connections, writes to the new primary. It never uses the old one again, even if that
// responds again while the new one is down.
func TestFrozenPrimary(t *testing.T) {
	testenv.OnlySoak(t, "waits for several timeouts")
	t.Parallel()
	primary, standby, database := startPair(t)
	s := start(t, onDatabase(database))
	key := adminKey(t, database)
	c := newClient(t, s, key)
	var warm sync.WaitGroup // fills the pool
	for range 32 {
		c := newClient(t, s, key)
		warm.Go(func() {
			for range 5 {
				c.try("POST", "/v1/pets", newPetBody("before", 1, "sold"))
			}
		})
	}
	warm.Wait()
	put := func(name string) bool {
		a, err := c.try("PUT", "/v1/categories/7", fmt.Sprintf(`{"name":%q}`, name))
		return err == nil && a.status/100 == 2
	}
	// Without its standby, the old primary would wait in every commit, unless an
	// operator has turned that off.
	primary.Set(t, "synchronous_standby_names", "")
	primary.Freeze()
	if put("while frozen") {
		t.Fatal("a write succeeded although the primary is frozen")
	}
	standby.Promote(t)
	testenv.Eventually(t, "writes succeed again", func() bool { return put("after") })

	primary.Thaw()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := primary.Exec(ctx, "store", "INSERT INTO categories (id, name) VALUES (8, 'accepts writes')"); err != nil {
		t.Fatalf("the old primary doesn't accept writes, so the test proves nothing: %v", err)
	}
	for range 50 {
		if !put("new primary") {
			t.Error("a write to the new primary failed")
		}
	}
	standby.Stop(t)
	for i := range 20 {
		if put(fmt.Sprint("nobody ", i)) {
			t.Fatal("a write succeeded while the new primary was down: it went to the old one")
		}
	}
	standby.Restart(t)
	testenv.Eventually(t, "writes succeed again", func() bool { return put("new primary, restarted") })
	if err := primary.Exec(ctx, "store", "DO $$ BEGIN IF EXISTS (SELECT FROM categories WHERE id = 7 AND name <> 'while frozen') THEN RAISE 'written to'; END IF; END $$"); err != nil {
		t.Errorf("the old primary: %v", err)
	}
}
