package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"animalstore/internal/db/postgres/pgtest"
)

// trouble is something that happens to a PostgreSQL server.
type trouble struct {
	name       string
	begin, end func(t *testing.T)
	ready      bool          // /readyz stays green
	within     time.Duration // every request is answered
}

// TestPostgresGone: when PostgreSQL stops responding, no request waits for
// more than three seconds, each is told to retry, and without a restart everything
// works again when PostgreSQL does.
func TestPostgresGone(t *testing.T) {
	t.Parallel()
	pg := pgtest.Start(t)
	database := pg.NewDatabase(t, "")
	s := start(t, onDatabase(database))
	key := newKey(t, database, "--name", "load", "--plan", "enterprise", "--per-minute", "1000000", "--per-day", "1000000", "--permissions", "read,write,admin")
	c := newClient(t, s, key)
	wantStatus(t, c.do(t, "POST", "/v1/pets", newPetBody("Rex", 1, "available")), 201, "")

	var unlock func()
	for _, trouble := range []trouble{
		{"frozen", func(*testing.T) { pg.Freeze() }, func(*testing.T) { pg.Thaw() }, false, 3 * time.Second},
		{"killed", func(*testing.T) { pg.Kill() }, func(t *testing.T) { pg.Restart(t) }, false, 3 * time.Second},
		{"stopped", func(t *testing.T) { pg.Stop(t) }, func(t *testing.T) { pg.Restart(t) }, false, 3 * time.Second},
		// All connections wait for a lock, so that even keys have to wait for one.
		{"locked", func(t *testing.T) { unlock = lockTables(t, pg, database) }, func(*testing.T) { unlock() }, true, 6 * time.Second},
	} {
		t.Run(trouble.name, func(t *testing.T) {
			trouble.begin(t)
			testGone(t, s, key, trouble)
			trouble.end(t)
			eventually(t, time.Minute, "requests are served again", func() bool { return c.get(t, "/v1/pets").status == 200 })
			for i := range 40 { // on every connection there is
				wantStatus(t, c.do(t, "POST", "/v1/pets", newPetBody(fmt.Sprint("after ", i), 1, "available")), 201, "")
			}
			wantStatus(t, c.get(t, "/readyz"), 200, "")
		})
	}
	if s.ended() {
		t.Fatalf("the server has ended:\n%s", s.output())
	}
	s.stop()
	if log := s.stderr.String(); strings.Contains(log, "level=ERROR") || strings.Contains(log, "panic") {
		t.Errorf("the log has errors other than unreachable storage:\n%s", log)
	}
}

// lockTables locks pets and orders in another session.
func lockTables(t *testing.T, pg *pgtest.Server, database string) (unlock func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	locked := make(chan error, 1)
	go func() {
		locked <- pg.Exec(ctx, pgtest.Name(database), "BEGIN; LOCK TABLE pets, orders, categories; SELECT pg_sleep(120)")
	}()
	eventually(t, time.Minute, "the tables are locked", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		err := pg.Exec(ctx, pgtest.Name(database), "SET lock_timeout = 10; SELECT FROM pets LIMIT 1")
		return err != nil && strings.Contains(err.Error(), "55P03")
	})
	return func() {
		cancel()
		<-locked
	}
}

// testGone sends every kind of request at once, for a while, to a server whose
// storage is gone.
func testGone(t *testing.T, s *server, key string, trouble trouble) {
	unknown := "ast_live_00000000000000000000000000000000000000"
	requests := []struct {
		method, path, body, key string
		headers                 []string
	}{
		{"GET", "/v1/pets", "", key, nil},
		{"GET", "/v1/pets?status=sold&limit=1", "", key, nil},
		{"GET", "/v1/pets/1", "", key, nil},
		{"POST", "/v1/pets", newPetBody("during", 1, "available"), key, nil},
		{"POST", "/v1/pets", newPetBody("during", 1, "available"), key, []string{"Idempotency-Key", "gone"}},
		{"PATCH", "/v1/pets/1", `{"name":"Max"}`, key, nil},
		{"POST", "/v1/store/orders", `{"petId":1}`, key, nil},
		{"GET", "/v1/store/orders", "", key, nil},
		{"PUT", "/v1/categories/1", `{"name":"cats"}`, key, nil},
		{"GET", "/v1/pets", "", unknown, nil},
	}
	if !trouble.ready { // then not even keys can be read
		requests = append(requests, []struct {
			method, path, body, key string
			headers                 []string
		}{
			{"GET", "/v1/keys", "", key, nil},
			{"GET", "/v1/keys/1/usage", "", key, nil},
			{"POST", "/v1/keys", `{"name":"k","plan":"free"}`, key, nil},
			{"GET", "/v1/nothing", "", key, nil},
			{"GET", "/v1/pets", "", "some-secret-of-another-make", nil},
		}...)
	}
	busy := watchAlive(t, s)
	var mu sync.Mutex
	slowest := map[string]time.Duration{}
	timed := func(what string, begun time.Time) {
		mu.Lock()
		defer mu.Unlock()
		slowest[what] = max(slowest[what], time.Since(begun))
	}
	var wg sync.WaitGroup
	for _, r := range requests {
		for range 3 {
			c := newClient(t, s, r.key)
			wg.Go(func() {
				for range 3 {
					begun := time.Now()
					a, err := c.try(r.method, r.path, r.body, r.headers...)
					timed(r.method+" "+r.path, begun)
					if err != nil {
						t.Errorf("%s %s: %v", r.method, r.path, err)
						continue
					}
					wait, _ := strconv.Atoi(a.header.Get("Retry-After"))
					if r.key == unknown && a.status == 401 {
						continue // its checksum is wrong: no storage is asked
					}
					if r.path == "/v1/nothing" && a.status == 404 {
						continue // while the key is warm
					}
					if a.status != 503 || !strings.Contains(a.body, `"code":"unavailable"`) || wait < 1 {
						t.Errorf("%s %s: got %d %s with Retry-After %d, want 503 unavailable and to wait", r.method, r.path, a.status, a.body, wait)
					}
				}
			})
		}
	}
	wg.Wait()
	begun := time.Now()
	a := newClient(t, s, "").get(t, "/readyz")
	timed("ready", begun)
	if want := map[bool]int{true: 200, false: 503}[trouble.ready]; a.status != want {
		t.Errorf("/readyz: got %d %s, want %d", a.status, a.body, want)
	}
	delay := busy()
	for what, took := range slowest {
		if took > trouble.within+delay {
			t.Errorf("%s took %v, want at most %v, plus %v because the machine is busy", what, took, trouble.within, delay)
		}
	}
	t.Logf("slowest: %v", slowest)
}

// TestPostgresWarmKey: a key that was just seen stays valid for its second when
// the database goes away: what needs no storage is served.
func TestPostgresWarmKey(t *testing.T) {
	t.Parallel()
	pg := pgtest.Start(t)
	database := pg.NewDatabase(t, "")
	s := start(t, onDatabase(database))
	c := newClient(t, s, loadKey(t, database))
	const attempts = 20
	for attempt := range attempts {
		eventually(t, time.Minute, "requests are served", func() bool { return c.get(t, "/v1/limits").status == 200 })
		// The key may have been read up to a second ago: wait until it is read anew.
		time.Sleep(time.Second)
		begun := time.Now()
		wantStatus(t, c.get(t, "/v1/limits"), 200, "")
		pg.Freeze()
		warm := c.get(t, "/v1/limits")
		took := time.Since(begun)
		var cold response
		eventually(t, time.Minute, "the key has to be read again", func() bool {
			cold = c.get(t, "/v1/limits")
			return cold.status != 200
		})
		pg.Thaw()
		wantStatus(t, cold, 503, "unavailable")
		if took < 800*time.Millisecond {
			wantStatus(t, warm, 200, "")
			// The server shuts down cleanly nevertheless.
			pg.Freeze()
			s.stop()
			return
		}
		t.Logf("attempt %d: the machine took %v for what has to be done within a second", attempt, took)
	}
	t.Fatalf("the machine was too busy in all of %d attempts", attempts)
}

// TestPostgresCounts: what was counted while the database was away is saved when
// it is back.
func TestPostgresCounts(t *testing.T) {
	t.Parallel()
	pg := pgtest.Start(t)
	database := pg.NewDatabase(t, "")
	key := newKey(t, database, "--name", "counted", "--plan", "pro") // the first one, so its id is 1
	s := start(t, onDatabase(database))
	c := newClient(t, s, key)
	wantStatus(t, c.get(t, "/v1/pets"), 200, "")
	admitted := 1
	pg.Freeze()
	for range 20 {
		a := c.get(t, "/v1/pets")
		if a.header.Get("X-RateLimit-Limit") == "300" { // it passed the limiter
			admitted++
		}
		wantStatus(t, a, 503, "unavailable")
	}
	pg.Thaw()
	eventually(t, time.Minute, "requests are served again", func() bool {
		a := c.get(t, "/v1/limits")
		if a.header.Get("X-RateLimit-Limit") == "300" {
			admitted++
		}
		return a.status == 200
	})
	left := c.get(t, "/v1/limits").header.Get("X-RateLimit-Remaining")
	admitted++
	if remaining, err := strconv.Atoi(left); err != nil || remaining > 300-admitted {
		t.Errorf("%s of 300 remain after %d requests, want no more than %d", left, admitted, 300-admitted)
	}
	s.stop() // saves
	r := run(t, "keys", "usage", "1", "--json", "--database", database)
	var hours []struct{ Admitted int }
	if err := json.Unmarshal([]byte(r.stdout), &hours); err != nil {
		t.Fatalf("%v in %s%s", err, r.stdout, r.stderr)
	}
	got := 0
	for _, h := range hours {
		got += h.Admitted
	}
	if got < admitted {
		t.Errorf("saved are %d requests, want at least %d", got, admitted)
	}
}
