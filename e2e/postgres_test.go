package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"animalstore/internal/db/postgres/pgtest"
	"animalstore/internal/testenv"
)

// withPassword adds a password to a URL. The tests' servers don't require one.
func withPassword(url, password string) string {
	return strings.Replace(url, "animalstore@", "animalstore:"+password+"@", 1)
}

// startAll starts n instances on one database at the same time.
func startAll(t testing.TB, n int, database string, opts ...option) []*server {
	t.Helper()
	all := make([]*server, n)
	for i := range all {
		all[i] = launch(t, append([]option{onDatabase(database)}, opts...)...)
	}
	for _, s := range all {
		if !s.awaitServing() {
			t.Fatalf("an instance does not serve.\n%s", s.output())
		}
	}
	return all
}

// TestPostgresFirstRun: if several instances start at once on an empty database, one
// shows the owner key, which then works on all. Nothing reveals the password.
func TestPostgresFirstRun(t *testing.T) {
	t.Parallel()
	const password = "hunter2"
	database := withPassword(pgtest.Shared(t).NewDatabase(t, ""), password)
	instances := startAll(t, 3, database)
	var key string
	for _, s := range instances {
		out := s.stdout.String()
		if out == "" {
			continue
		}
		if key != "" {
			t.Errorf("a second instance shows a key:\n%s", out)
		}
		for line := range strings.Lines(out) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "ast_live_") {
				key = line
			}
		}
		if !strings.Contains(out, "Database  postgres://127.0.0.1:") || !strings.Contains(out, "/"+pgtest.Name(database)+"\n") {
			t.Errorf("the greeting does not name the database:\n%s", out)
		}
	}
	if key == "" {
		t.Fatal("no instance shows a key")
	}
	for i, s := range instances {
		c := newClient(t, s, key)
		wantStatus(t, c.do(t, "POST", "/v1/pets", newPetBody(fmt.Sprint("of instance ", i), 1, "available")), 201, "")
		wantStatus(t, c.get(t, "/readyz"), 200, "")
	}
	for i, s := range instances {
		// All instances see a write at once.
		if got := len(newClient(t, s, key).allPets(t, 0)); got != 3 {
			t.Errorf("instance %d shows %d pets, want 3", i, got)
		}
		s.stop()
		if strings.Contains(s.output(), password) {
			t.Errorf("instance %d reveals the password:\n%s", i, s.output())
		}
	}
	for _, args := range [][]string{{"keys", "list"}, {"keys", "show", "1"}, {"keys", "usage", "1"}, {"keys", "revoke", "1"}} {
		r := run(t, append(args, "--database", database)...)
		if r.code != 0 || strings.Contains(r.stdout+r.stderr, password) {
			t.Errorf("%q: exit code %d, want 0 and no password\n%s%s", args, r.code, r.stdout, r.stderr)
		}
	}
}

// TestPostgresLostResponse: if the commit of a write was sent but not answered, the
// response says so, and the write can be repeated with its Idempotency-Key.
func TestPostgresLostResponse(t *testing.T) {
	t.Parallel()
	database := pgtest.Shared(t).NewDatabase(t, "")
	proxy := pgtest.NewProxy(t, database)
	s := start(t, onDatabase(proxy.URL(database)))
	c := newClient(t, s, loadKey(t, database))
	for i, order := range []bool{false, true} {
		name := fmt.Sprint("lost ", i)
		path, body := "/v1/pets", newPetBody(name, 1, "available")
		texts := []string{name, "commit\x00"}
		if order {
			a := c.do(t, "POST", "/v1/pets", body)
			wantStatus(t, a, 201, "")
			p, err := decodePet(a.body)
			if err != nil {
				t.Fatal(err)
			}
			path, body = "/v1/store/orders", fmt.Sprintf(`{"petId":%d}`, p.ID)
			texts[0] = "token-1"
		}
		token := fmt.Sprint("token-", i)
		lost := proxy.LoseAnswer(texts...)
		a := c.do(t, "POST", path, body, "Idempotency-Key", token)
		<-lost
		wantStatus(t, a, 503, "unavailable")
		if !strings.Contains(a.body, "retry with the same Idempotency-Key") || a.header.Get("Retry-After") == "" {
			t.Errorf("got %s with headers %v, want to be told to retry with the same Idempotency-Key", a.body, a.header)
		}
		a = c.do(t, "POST", path, body, "Idempotency-Key", token)
		wantStatus(t, a, 201, "")
		if a.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("sent again: got %s with headers %v, want a replay", a.body, a.header)
		}
	}
	// Without a key the pet may or may not have been created, and the response says so.
	lost := proxy.LoseAnswer("without a token")
	a := c.do(t, "POST", "/v1/pets", newPetBody("without a token", 1, "sold"))
	<-lost
	wantStatus(t, a, 503, "unavailable")
	if !strings.Contains(a.body, "may or may not have been made") {
		t.Errorf("got %s, want a note that the change may have been made", a.body)
	}
	names := map[string]int{}
	for _, p := range c.allPets(t, 0) {
		names[p.Name]++
	}
	if want := (map[string]int{"lost 0": 1, "lost 1": 1, "without a token": 1}); fmt.Sprint(names) != fmt.Sprint(want) {
		t.Errorf("got %v stored, want %v", names, want)
	}
	orders := c.get(t, "/v1/store/orders")
	if n := strings.Count(orders.body, `"petId"`); orders.status != http.StatusOK || n != 1 {
		t.Errorf("got %d %s, want one order", orders.status, orders.body)
	}
}

// trouble is a problem of a PostgreSQL server.
type trouble struct {
	name       string
	begin, end func(t *testing.T)
	ready      bool          // /readyz stays 200
	within     time.Duration // every request is answered
}

// TestPostgresGone: when PostgreSQL stops responding, no request waits for more than
// three seconds, each response says to retry, and everything works again without a
// restart when PostgreSQL is back.
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
		// All connections wait for a lock, so that even key lookups have to wait for
		// one.
		{"locked", func(t *testing.T) { unlock = lockTables(t, pg, database) }, func(*testing.T) { unlock() }, true, 6 * time.Second},
	} {
		t.Run(trouble.name, func(t *testing.T) {
			trouble.begin(t)
			testGone(t, s, key, trouble)
			trouble.end(t)
			testenv.Eventually(t, "requests are served again", func() bool { return c.get(t, "/v1/pets").status == 200 })
			for i := range 40 { // on every connection
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
	testenv.Eventually(t, "the tables are locked", func() bool {
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

// testGone sends every kind of request at once, for a while, to a server whose storage
// is gone.
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
						continue // its checksum is wrong, so storage isn't used
					}
					if r.path == "/v1/nothing" && a.status == 404 {
						continue // while the key is warm
					}
					if a.status != 503 || !strings.Contains(a.body, `"code":"unavailable"`) || wait < 1 {
						t.Errorf("%s %s: got %d %s with Retry-After %d, want 503 unavailable with Retry-After", r.method, r.path, a.status, a.body, wait)
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
		if took > trouble.within+10*delay {
			t.Errorf("%s took %v, want at most %v, with a machine that takes up to %v for anything", what, took, trouble.within, delay)
		}
	}
	t.Logf("slowest: %v", slowest)
}

// TestPostgresWarmKey: a key that was just used stays valid for a second when the
// database goes away: requests that need no storage are served.
func TestPostgresWarmKey(t *testing.T) {
	t.Parallel()
	pg := pgtest.Start(t)
	database := pg.NewDatabase(t, "")
	s := start(t, onDatabase(database))
	c := newClient(t, s, loadKey(t, database))
	const attempts = 20
	for attempt := range attempts {
		testenv.Eventually(t, "requests are served", func() bool { return c.get(t, "/v1/limits").status == 200 })
		// The key may have been read up to a second ago: wait until it is read again.
		time.Sleep(time.Second)
		begun := time.Now()
		wantStatus(t, c.get(t, "/v1/limits"), 200, "")
		pg.Freeze()
		warm := c.get(t, "/v1/limits")
		took := time.Since(begun)
		var cold response
		testenv.Eventually(t, "the key has to be read again", func() bool {
			cold = c.get(t, "/v1/limits")
			return cold.status != 200
		})
		pg.Thaw()
		wantStatus(t, cold, 503, "unavailable")
		if took < 800*time.Millisecond {
			wantStatus(t, warm, 200, "")
			// The server still shuts down cleanly.
			pg.Freeze()
			s.stop()
			return
		}
		t.Logf("attempt %d: the machine took %v for what has to be done within a second", attempt, took)
	}
	t.Fatalf("the machine was too busy in all of %d attempts", attempts)
}

// TestPostgresCounts: requests counted while the database was away are saved when it is
// back.
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
	testenv.Eventually(t, "requests are served again", func() bool {
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
		t.Errorf("got %d requests saved, want at least %d", got, admitted)
	}
}

// printedCommand matches the command that db backup and db restore print for
// PostgreSQL.
var printedCommand = regexp.MustCompile(`(?m)^  (pg_(?:dump|restore) .*)$`)

// TestPostgresBackup runs the commands that db backup and db restore print, while a
// server adds pets. The restored store is complete and works.
func TestPostgresBackup(t *testing.T) {
	t.Parallel()
	testenv.Need(t, "pg_dump")
	testenv.Need(t, "pg_restore")
	pg := pgtest.Shared(t)
	database, empty := pg.NewDatabase(t, ""), pg.NewDatabase(t, "")
	if r := run(t, "seed", "--pets", "500", "--database", database); r.code != 0 {
		t.Fatalf("seed: %+v", r)
	}
	key := loadKey(t, database)
	s := start(t, onDatabase(database+"&pool_max_conns=4"))
	c := newClient(t, s, key)
	wantStatus(t, c.do(t, "POST", "/v1/pets", newPetBody("It's 🐈", 7, "pending")), 201, "")
	before := c.allPets(t, 0)
	if len(before) != 501 {
		t.Fatalf("the store has %d pets, want 501", len(before))
	}
	l := startLoad(t, s, key, 2, "during the backup", 100)
	testenv.Eventually(t, "pets are added", func() bool { return l.acknowledged.Load() > 0 })

	dir := t.TempDir()
	file := filepath.Join(dir, "it's a store.dump")
	shell := func(what string, args ...string) {
		t.Helper()
		r := run(t, args...)
		m := printedCommand.FindStringSubmatch(r.stderr)
		if r.code == 0 || m == nil {
			t.Fatalf("%s: got %+v, want exit code 1 and the command to run", what, r)
		}
		cmd := exec.Command("sh", "-c", m[1])
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", m[1], err, out)
		}
	}
	shell("db backup", "db", "backup", file, "--database", database)
	l.stop()
	after := c.allPets(t, 0)
	s.stop()
	if info, err := os.Stat(file); err != nil || info.Size() == 0 {
		t.Fatalf("the dump: %v, %v", info, err)
	}
	shell("db restore", "db", "restore", file, "--database", empty)

	if r := run(t, "db", "check", "--database", empty); r.code != 0 {
		t.Errorf("db check: %+v", r)
	}
	c = newClient(t, start(t, onDatabase(empty)), key)
	restored := c.allPets(t, 0)
	for id, p := range before {
		if restored[id] != p {
			t.Errorf("pet %d is %+v, want %+v", id, restored[id], p)
		}
	}
	for id, p := range restored {
		if after[id] != p {
			t.Errorf("pet %d is %+v in the copy, and %+v in the store", id, p, after[id])
		}
	}
	a := c.do(t, "POST", "/v1/pets", newPetBody("after", 1, "sold"))
	wantStatus(t, a, 201, "")
	if p, err := decodePet(a.body); err != nil || restored[p.ID].ID != 0 {
		t.Errorf("the first new pet is %s, %v, want an unused id", a.body, err)
	}
}
