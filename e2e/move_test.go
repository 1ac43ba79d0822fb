package e2e

import (
	"context"
	"fmt"
	"testing"

	"animalstore/internal/db/postgres/pgtest"
	"animalstore/internal/testenv"

	"github.com/jackc/pgx/v5"
)

// moveSource is a store with keys in every state.
type moveSource struct {
	file          string
	pets          int64
	owner, banned string   // secrets
	revoked, old  string   // the latter was rotated and still works
	retry         []string // headers of a write that was done
	created       response // and its response
}

func newMoveSource(t *testing.T, pets int64) moveSource {
	t.Helper()
	m := moveSource{file: newDatabase(t), pets: pets, retry: []string{"Idempotency-Key", "~move'me\\"}}
	if r := run(t, "seed", "--pets", fmt.Sprint(pets), "--database", "sqlite:"+m.file); r.code != 0 {
		t.Fatalf("seed: %+v", r)
	}
	s := start(t, onDatabase(m.file))
	m.owner = s.ownerKey()
	c := newClient(t, s, m.owner)
	m.created = c.do(t, "POST", "/v1/pets", `{"name":"Zoë 🐕‍🦺\t\\N","categoryId":-9223372036854775808}`, m.retry...)
	wantStatus(t, m.created, 201, "")
	gone := c.do(t, "POST", "/v1/pets", `{"name":"gone","categoryId":9223372036854775807}`)
	wantStatus(t, gone, 201, "")
	wantStatus(t, c.do(t, "DELETE", gone.header.Get("Location"), ""), 204, "")
	m.old = newKey(t, m.file, "--name", "rotated", "--plan", "pro", "--expires", "90d")
	m.revoked = newKey(t, m.file, "--name", "revoked")
	m.banned = newKey(t, m.file, "--name", "banned", "--plan", "enterprise", "--per-minute", "1", "--per-day", "1000")
	command(t, m.file, "rotate", "2")
	command(t, m.file, "revoke", "3")
	newClient(t, s, m.banned).provokeBan(t)
	s.stop()
	// Some of it is only in the log of a killed server.
	s = start(t, onDatabase(m.file))
	wantStatus(t, newClient(t, s, m.owner).do(t, "POST", "/v1/pets", newPetBody("last", 1, "sold")), 201, "")
	s.kill()
	return m
}

// checkServed checks that clients don't notice that the store was moved.
func (m moveSource) checkServed(t *testing.T, database string) {
	t.Helper()
	s := start(t, onDatabase(database))
	if got := s.stdout.String(); got != "" {
		t.Errorf("the server creates an owner key in a store that has keys: %s", got)
	}
	c := newClient(t, s, m.owner)
	again := c.do(t, "POST", "/v1/pets", `{"name":"Zoë 🐕‍🦺\t\\N","categoryId":-9223372036854775808}`, m.retry...)
	if again.status != 201 || again.body != m.created.body || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("a write sent again: got %d %s %v, want the first response again, %s", again.status, again.body, again.header, m.created.body)
	}
	wantStatus(t, newClient(t, s, m.banned).get(t, "/v1/pets"), 429, "key_banned")
	wantStatus(t, newClient(t, s, m.old).get(t, "/v1/pets"), 200, "")
	wantStatus(t, newClient(t, s, m.revoked).get(t, "/v1/pets"), 401, "invalid_api_key")
	if got := len(c.allPets(t, 0)); int64(got) != m.pets+2 {
		t.Errorf("got %d pets, want %d", got, m.pets+2)
	}
	next, err := decodePet(c.do(t, "POST", "/v1/pets", `{"name":"next","categoryId":1}`).body)
	if want := m.pets + 4; err != nil || next.ID != want {
		t.Errorf("the next pet has id %d (%v), want %d, which was never used", next.ID, err, want)
	}
	s.stop()
}

// TestMove kills a move to PostgreSQL in the middle, which leaves nothing behind, and
// runs it again.
func TestMove(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	pg := pgtest.Shared(t)
	database := pg.NewDatabase(t, "")
	if r := run(t, "db", "migrate", "--database", database); r.code != 0 {
		t.Fatalf("db migrate: %+v", r)
	}
	source := newMoveSource(t, int64(testenv.Count(500, 1_000_000)))
	args := []string{"db", "move", "--from", "sqlite:" + source.file, "--to", database}

	unlock := lockTables(t, pg, database)
	move := startCommand(t, args...)
	const waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
	testenv.Eventually(t, "the move waits for a lock", func() bool { return move.ended() || queryPostgres[int](t, database, waiting) > 0 })
	if move.ended() {
		t.Fatalf("the move has ended:\n%s", move.output())
	}
	move.kill()
	unlock()
	for _, table := range []string{"pets", "orders", "categories", "keys"} {
		if n := queryPostgres[int](t, database, "SELECT count(*) FROM "+table); n != 0 {
			t.Errorf("a killed move leaves %d rows in %s, want none", n, table)
		}
	}

	if r := run(t, args...); r.code != 0 {
		t.Fatalf("db move: %+v", r)
	}
	if r := run(t, "db", "check", "--database", database); r.code != 0 {
		t.Errorf("db check: %+v", r)
	}
	source.checkServed(t, database)
	if r := run(t, args...); r.code != 1 {
		t.Errorf("a second move to the same database: exit code %d, want 1", r.code)
	}
}

// queryPostgres runs a query for one value.
func queryPostgres[T any](t testing.TB, database, query string) (value T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testenv.Deadline)
	defer cancel()
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if err := conn.QueryRow(ctx, query).Scan(&value); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return value
}
