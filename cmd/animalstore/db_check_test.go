package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"animalstore/internal/db"
	"animalstore/internal/db/postgres/pgtest"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// damages break a rule each, by statements that both engines understand once
// nothing holds them back any more.
var damages = []struct{ rule, statements, says string }{
	{"every pet has a known status", "UPDATE pets SET status = 3 WHERE id = 7", "pet 7 has status 3"},
	{"every order has a known status", "UPDATE orders SET status = 9 WHERE id = 4", "order 4 has status 9"},
	{"every pet, order and key has a positive id", "UPDATE pets SET id = -7 WHERE id = 7", "pet -7"},
	{"every pet, order and key has a positive id", "UPDATE orders SET id = 0 WHERE id = 4", "order 0"},
	{"every pet, order and key has a positive id", "UPDATE keys SET id = -4 WHERE id = 4", "key -4"},
	{"every pet has a name", "UPDATE pets SET name = '' WHERE id = 9", "pet 9"},
	{"every pet's category exists", "DELETE FROM categories WHERE id = 0", "pet 8 is of category 0"},
	{"a pet with an open order is there and pending", "UPDATE pets SET status = 0 WHERE id = 1", "pet 1 has the open order 1"},
	{"a pet with an open order is there and pending", "DELETE FROM pets WHERE id = 2", "pet 2 of order 2 is gone"},
	{"a pet has at most one open order", "INSERT INTO orders (id, pet_id, status, created_at, updated_at) VALUES (1900, 1, 0, 1, 1)", "pet 1 has 2"},
	{"a pet that was delivered is sold or gone", "UPDATE pets SET status = 0 WHERE id = 3", "pet 3 was delivered by order 3"},
	{"every key has a known plan and environment, limits and permissions", "UPDATE keys SET plan = 'gold' WHERE id = 2", "key 2"},
	{"every key has a known plan and environment, limits and permissions", "UPDATE keys SET environment = '' WHERE id = 2", "key 2"},
	{"every key has a known plan and environment, limits and permissions", "UPDATE keys SET per_minute = 0 WHERE id = 2", "key 2"},
	{"every key has a known plan and environment, limits and permissions", "UPDATE keys SET per_day = -1 WHERE id = 2", "key 2"},
	{"every key has a known plan and environment, limits and permissions", "UPDATE keys SET permissions = 8 WHERE id = 2", "key 2"},
	{"every secret, usage and limit belongs to a key", "UPDATE key_secrets SET key_id = 50 WHERE key_id = 3", "a secret of key 50"},
	{"every secret, usage and limit belongs to a key", "UPDATE usage SET key_id = 50 WHERE key_id = 2", "usage of key 50"},
	{"every secret, usage and limit belongs to a key", "UPDATE limit_states SET key_id = 50 WHERE key_id = 2", "limits of key 50"},
	{"every hash has 32 bytes", "UPDATE key_secrets SET hash = substr(hash, 1, 31) WHERE key_id = 1", "a secret of key 1"},
	{"every hash has 32 bytes", "UPDATE answers SET body_hash = substr(body_hash, 2) WHERE token = 'a'", "idempotency record a of key 1"},
	{"every idempotency record has its answer", "UPDATE answers SET answer = '' WHERE token = 'a'", "idempotency record a of key 1"},
}

// checked runs every check and returns the lines of those that found something.
func checked(t *testing.T, url string) (wrong []string, err error) {
	t.Helper()
	source, err := databaseFlag{"database", url}.openSource(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	var stdout strings.Builder
	err = check(t.Context(), source, &stdout, io.Discard)
	for line := range strings.Lines(stdout.String()) {
		if !strings.HasPrefix(line, "ok     ") {
			wrong = append(wrong, strings.TrimSuffix(line, "\n"))
		}
	}
	if got, want := strings.Count(stdout.String(), "\n"), len(db.Checks)+len(source.Checks()); got != want {
		t.Errorf("got %d lines, want one for each of %d checks:\n%s", got, want, &stdout)
	}
	return wrong, err
}

// wantWrong fails the test unless a check found what is wrong.
func wantWrong(t *testing.T, url, rule, says string) {
	t.Helper()
	wrong, err := checked(t, url)
	found := false
	for _, line := range wrong {
		found = found || strings.HasPrefix(line, "WRONG  "+rule) && strings.Contains(line, says)
	}
	if !found || err == nil || !strings.Contains(err.Error(), "found something wrong") {
		t.Errorf("%s: got %q, %v, want a line with %q", rule, wrong, err, says)
	}
}

func wantSound(t *testing.T, url string) {
	t.Helper()
	if wrong, err := checked(t, url); wrong != nil || err != nil {
		t.Fatalf("a sound store: got %q, %v", wrong, err)
	}
}

func TestEveryCheckIsBroken(t *testing.T) {
	broken := map[string]bool{}
	for _, d := range damages {
		broken[d.rule] = true
	}
	for _, c := range db.Checks {
		if !broken[c.Rule] {
			t.Errorf("no damage breaks the rule that %s", c.Rule)
		}
	}
}

// copyStore copies a SQLite file that nobody has open.
func copyStore(t *testing.T, url string) (path string) {
	t.Helper()
	data, err := os.ReadFile(strings.TrimPrefix(url, "sqlite:"))
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "copy.db")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCheckFindsDamageInSQLite(t *testing.T) {
	t.Parallel()
	sound := "sqlite:" + filepath.Join(t.TempDir(), "store.db")
	withStore(t, sound, func(store db.DB) { oddStore(t, store) })
	wantSound(t, sound)
	damaged := func(statements string) string {
		path := copyStore(t, sound)
		conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		script := "PRAGMA ignore_check_constraints = ON; DROP INDEX orders_open; " + statements + ";"
		if err := sqlitex.ExecuteScript(conn, script, nil); err != nil {
			t.Fatalf("%s: %v", statements, err)
		}
		return "sqlite:" + path
	}
	wantSound(t, damaged("SELECT 1"))
	for _, d := range damages {
		wantWrong(t, damaged(d.statements), d.rule, d.says)
	}
	wantWrong(t, damaged("UPDATE usage SET key_id = 50 WHERE key_id = 2"), "every reference leads to a row", "usage refers to a row of keys that is not there")
	wantWrong(t, damaged("UPDATE sqlite_sequence SET seq = 10 WHERE name = 'pets'"), "no id is given twice", "pets go up to id 11, but the last given is 10")
	wantWrong(t, damaged("DELETE FROM sqlite_sequence WHERE name = 'orders'"), "no id is given twice", "orders go up to id 6, but the last given is 0")
	wantWrong(t, damaged("UPDATE sqlite_sequence SET seq = 3 WHERE name = 'keys'"), "no id is given twice", "keys go up to id 4, but the last given is 3")
	wantWrong(t, damaged("PRAGMA writable_schema = ON; UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'answers_by_age') WHERE name = 'usage_by_hour'"),
		"the file is intact", "")
	// A page is overwritten: some checks cannot even read.
	path := copyStore(t, sound)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := strings.Index(string(data), `DROP TABLE pets`) // a pet's name
	copy(data[at&^4095:], strings.Repeat("\xff", 64))
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	wantWrong(t, "sqlite:"+path, "the file is intact", "")
}

func TestCheckFindsDamageInPostgreSQL(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	sound := server.NewDatabase(t, "")
	withStore(t, sound, func(store db.DB) { oddStore(t, store) })
	wantSound(t, sound)
	server.MustExec(t, pgtest.Name(sound), `DROP INDEX orders_open;
		ALTER TABLE pets DROP CONSTRAINT pets_status_check; ALTER TABLE orders DROP CONSTRAINT orders_status_check;
		ALTER TABLE key_secrets DROP CONSTRAINT key_secrets_hash_check, DROP CONSTRAINT key_secrets_key_id_fkey;
		ALTER TABLE pets ALTER COLUMN id SET GENERATED BY DEFAULT; ALTER TABLE orders ALTER COLUMN id SET GENERATED BY DEFAULT`)
	wantSound(t, sound)
	// The rules are the same as above, so one damage for each is enough, and one
	// comes on top of the other.
	damage := func(statements, rule, says string) {
		t.Helper()
		server.MustExec(t, pgtest.Name(sound), statements)
		wantWrong(t, sound, rule, says)
	}
	last := ""
	for _, d := range damages {
		if d.rule != last {
			damage(d.statements, d.rule, d.says)
		}
		last = d.rule
	}
	const rule = "no id is given twice"
	damage("ALTER TABLE pets ALTER COLUMN id RESTART WITH 11", rule, "pets go up to id 11, but the last given is 10")
	damage("SELECT setval('orders_id_seq', 1)", rule, "orders go up to id 1900, but the last given is 1")
	damage("ALTER TABLE keys ALTER COLUMN id RESTART", rule, "keys go up to id 4, but the last given is 0")
}

// TestCheckTakesItsTime: where nobody watches, a line tells now and then what
// takes so long.
func TestCheckTakesItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said strings.Builder
		stop := showWork(&said, "every cat is grey")
		time.Sleep(2*progressEvery + time.Second)
		stop()
		if got, want := said.String(), "checking for 5 s: every cat is grey\nchecking for 10 s: every cat is grey\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
