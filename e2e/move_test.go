//go:build linux

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"animalstore/internal/db/postgres/pgtest"
	"animalstore/internal/testenv"

	"github.com/jackc/pgx/v5"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// startMove starts moving a store in the background.
func startMove(t testing.TB, from, to string) *server {
	t.Helper()
	return startCommand(t, "db", "move", "--from", "sqlite:"+from, "--to", to)
}

// wantUntouched checks that a move that ended early left nothing behind, not even a
// used id or disk space.
func wantUntouched(t *testing.T, when, database string) {
	t.Helper()
	testenv.Eventually(t, "the server notices the end of the connection", func() bool {
		return asked[int](t, database, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()") == 0
	})
	for _, table := range []string{"pets", "orders", "categories", "keys", "key_secrets", "usage", "limit_states", "idempotency_records"} {
		if n := asked[int](t, database, "SELECT count(*) FROM "+table); n != 0 {
			t.Errorf("%s: %d rows are left in %s, want none", when, n, table)
		}
		if size := asked[int64](t, database, "SELECT pg_relation_size('"+table+"')"); size != 0 {
			t.Errorf("%s: %s takes up %d bytes, want none", when, table, size)
		}
	}
	for _, table := range []string{"pets", "orders", "keys"} {
		if given := asked[bool](t, database, "SELECT is_called OR last_value <> 1 FROM "+table+"_id_seq"); given {
			t.Errorf("%s: the ids of %s do not start at 1 any more", when, table)
		}
	}
}

// moveSource is a store with pets, orders, and keys in every state.
type moveSource struct {
	file          string
	pets, total   int64
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
	for range 3 { // the highest ids are not in use any more
		a := c.do(t, "POST", "/v1/pets", `{"name":"gone","categoryId":9223372036854775807}`)
		wantStatus(t, a, 201, "")
		wantStatus(t, c.do(t, "DELETE", a.header.Get("Location"), ""), 204, "")
	}
	m.old = newKey(t, m.file, "--name", "rotated", "--plan", "pro", "--expires", "90d")
	m.revoked = newKey(t, m.file, "--name", "revoked")
	m.banned = newKey(t, m.file, "--name", "banned", "--plan", "free")
	for _, args := range [][]string{{"rotate", "2"}, {"revoke", "3"}} {
		if r := run(t, "keys", args[0], args[1], "--database", "sqlite:"+m.file); r.code != 0 {
			t.Fatalf("keys %s: %+v", args, r)
		}
	}
	newClient(t, s, m.banned).provokeBan(t)
	s.stop()
	return m
}

// checkServed checks that clients don't notice that the store was moved.
func (m moveSource) checkServed(t *testing.T, database string) {
	t.Helper()
	s := start(t, withArgs("--database", database))
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
	next, err := decodePet(c.do(t, "POST", "/v1/pets", `{"name":"next","categoryId":1}`).body)
	if want := m.pets + 4; err != nil || next.ID <= want {
		t.Errorf("the next pet has id %d (%v), want more than the %d that were given", next.ID, err, want)
	}
	s.stop()
}

// TestMoveKilled kills a move halfway, while it compares, and right before its end.
// Each time nothing is left behind, and the last move works.
func TestMoveKilled(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	pets := int64(20_000)
	if testenv.Soak {
		pets = 1_000_000
	}
	database := pgtest.Shared(t).NewDatabase(t, "")
	source := newMoveSource(t, pets)
	for _, table := range []string{"pets", "orders", "categories"} {
		source.total += counts(t, source.file, table)
	}
	// A pet takes about 57 bytes to send, and as many to read.
	for _, test := range []struct {
		when string
		at   stops
		sure func() (why string) // checks that the move got that far
	}{
		{"half way", stops{up: 43 * pets}, func() string {
			var copied int64
			testenv.Eventually(t, "the server has copied the rows it was sent", func() bool {
				copied = asked[int64](t, database, "SELECT coalesce(max(tuples_processed), 0) FROM pg_stat_progress_copy WHERE relid = 'pets'::regclass")
				return copied > source.total*2/5
			})
			if copied > source.total*4/5 {
				t.Errorf("got to %d of %d rows, want it to be killed in the middle", copied, source.total)
			}
			return fmt.Sprintf("with %d of %d rows in the server: %d %%", copied, source.total, 100*copied/source.total)
		}},
		{"while it compares", stops{down: 25 * pets}, nil},
		{"before its commit", stops{before: "Q\x00\x00\x00\x0bcommit\x00"}, nil},
	} {
		valve, through := newValve(t, database, test.at)
		began := time.Now()
		move := startMove(t, source.file, through)
		valve.await(t, test.when, move)
		why := ""
		if test.sure != nil {
			why = test.sure()
		}
		if compares := strings.Contains(move.stderr.String(), "Comparing"); compares != (test.sure == nil) || move.ended() {
			t.Errorf("%s: it compares: %t, it has ended: %t.\n%s", test.when, compares, move.ended(), move.output())
		}
		took := time.Since(began)
		move.kill()
		valve.cut()
		t.Logf("killed %s, after %.1f s %s", test.when, took.Seconds(), why)
		wantUntouched(t, "killed "+test.when, database)
	}
	began := time.Now()
	shown := moveOnTerminal(t, source.file, database)
	took := time.Since(began)
	if bar := regexp.MustCompile(`\[=+ *\] [0-9,]+ of [0-9,]+ rows, [0-9,]+ a second`); !bar.MatchString(shown) {
		t.Errorf("got no bar on the terminal: %q", shown)
	}
	said := regexp.MustCompile(`Moved ([0-9,]+) rows in [0-9.]+ s, ([0-9,]+) a second, and compared them: postgres://[^@ ]+/test_[0-9_]+ contains what sqlite:`).FindStringSubmatch(strings.Join(strings.Fields(shown), " ")) // a terminal gets its lines wrapped
	if said == nil {
		t.Fatalf("got no summary: %q", shown)
	}
	began = time.Now()
	rows := wantSameContent(t, source.file, database)
	t.Logf("moved %d rows in %.1f s, %s a second; compared once more in %.1f s", rows, took.Seconds(), said[2], time.Since(began).Seconds())
	if rows != ungrouped(t, said[1]) || rows < source.total {
		t.Errorf("it says %s rows, there are %d", said[1], rows)
	}
	began = time.Now()
	if r := run(t, "db", "check", "--database", database); r.code != 0 {
		t.Errorf("db check: %+v", r)
	}
	t.Logf("db check took %.1f s", time.Since(began).Seconds())
	source.checkServed(t, database)
}

// moveOnTerminal moves a store on a terminal and returns what it showed.
func moveOnTerminal(t *testing.T, from, to string) string {
	t.Helper()
	screen, terminal := openTerminal(t)
	shown := &buffer{}
	copied := make(chan struct{})
	go func() {
		io.Copy(shown, screen) // ends with the last program on the terminal
		close(copied)
	}()
	cmd := exec.Command(binary, "db", "move", "--from", "sqlite:"+from, "--to", to)
	cmd.Env = cleanEnv()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	err := cmd.Run()
	terminal.Close()
	<-copied
	if err != nil {
		t.Fatalf("db move: %v\n%s", err, shown)
	}
	return shown.String()
}

// TestMoveLosesItsConnection cuts the connection in the middle, and at the very end,
// where nobody can know whether the move was completed.
func TestMoveLosesItsConnection(t *testing.T) {
	t.Parallel()
	database := pgtest.Shared(t).NewDatabase(t, "")
	file := newDatabase(t)
	if r := run(t, "seed", "--pets", "2000", "--database", "sqlite:"+file); r.code != 0 {
		t.Fatalf("seed: %+v", r)
	}
	const commit = "Q\x00\x00\x00\x0bcommit\x00"
	for _, test := range []struct {
		when string
		at   stops
		want string
		full bool // the store was moved anyway
	}{
		{"in the middle", stops{up: 28 * 2000}, "the database stopped responding. Nothing was moved: the target and the source are unchanged. Run the same command again when it is back", false},
		{"while it compares", stops{down: 20 * 2000}, "the database stopped responding. Nothing was moved", false},
		{"before the commit", stops{before: commit}, "the connection was lost during the commit, so either everything was moved or nothing. Run the same command again: it refuses if everything was moved", false},
		{"after the commit", stops{sent: commit}, "the connection was lost during the commit, so either everything was moved or nothing", true},
	} {
		valve, through := newValve(t, database, test.at)
		move := startMove(t, file, through)
		valve.await(t, test.when, move)
		if test.full {
			testenv.Eventually(t, "the server commits", func() bool { return asked[int](t, database, "SELECT count(*) FROM pets") == 2000 })
		}
		valve.cut()
		if code := move.wait(); code != 1 || !strings.Contains(move.stderr.String(), test.want) {
			t.Errorf("%s: exit code %d, want 1 and %q.\n%s", test.when, code, test.want, move.output())
		}
		if !test.full {
			wantUntouched(t, test.when, database)
		}
	}
	r := run(t, "db", "move", "--from", "sqlite:"+file, "--to", database)
	if r.code != 1 || !strings.Contains(r.stderr, "the target is not empty (categories: 36, pets: 2000, ") {
		t.Errorf("run again: %+v", r)
	}
	wantSameContent(t, file, database)
}

// TestMoveToAFullDisk puts the target database on a small disk.
func TestMoveToAFullDisk(t *testing.T) {
	t.Parallel()
	dir := tmpfs(t, 16<<20)
	postgres := pgtest.Start(t)
	nobody, err := user.Lookup("nobody") // the user that the server runs as
	if err != nil {
		testenv.Missing(t, "there is no user nobody: %v", err)
	}
	uid, _ := strconv.Atoi(nobody.Uid)
	if err := os.Chown(dir, uid, -1); err != nil {
		t.Fatal(err)
	}
	for parent := filepath.Dir(dir); parent != os.TempDir() && parent != "/"; parent = filepath.Dir(parent) {
		if err := os.Chmod(parent, 0o755); err != nil { // so that it gets there
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { postgres.MustExec(t, "postgres", "DROP DATABASE small WITH (FORCE)") })
	postgres.MustExec(t, "postgres", "CREATE TABLESPACE small LOCATION '"+dir+"'")
	postgres.MustExec(t, "postgres", "CREATE DATABASE small TEMPLATE template0 TABLESPACE small")
	file, database := newDatabase(t), postgres.URL("small")
	if r := run(t, "seed", "--pets", "80000", "--database", "sqlite:"+file); r.code != 0 {
		t.Fatalf("seed: %+v", r)
	}
	r := run(t, "db", "move", "--from", "sqlite:"+file, "--to", database)
	if r.code != 1 || !strings.Contains(r.stderr, "the disk of the target is full. Nothing was moved: the target and the source are unchanged. Free some space and run the same command again") {
		t.Errorf("exit code %d, want 1 and what to do.\n%s", r.code, r.stderr)
	}
	wantUntouched(t, "a full disk", database)
}

// TestMoveAfterACrash: rows in the log of a killed server are moved too, and the source
// is unchanged.
func TestMoveAfterACrash(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := newClient(t, s, s.ownerKey())
	for range 50 {
		wantStatus(t, c.do(t, "POST", "/v1/pets", newPetBody("kept", 1, "available")), 201, "")
	}
	s.kill()
	left, err := os.ReadFile(s.database + "-wal")
	if err != nil || len(left) == 0 {
		t.Fatalf("the server left no log: %v", err)
	}
	if r := run(t, "db", "check", "--database", "sqlite:"+s.database); r.code != 0 {
		t.Errorf("db check: %+v", r)
	}
	copied := newDatabase(t)
	if r := run(t, "db", "move", "--from", "sqlite:"+s.database, "--to", "sqlite:"+copied); r.code != 0 {
		t.Fatalf("db move: %+v", r)
	}
	if n := counts(t, copied, "pets"); n != 50 {
		t.Errorf("%d pets came along, want 50", n)
	}
	if now, err := os.ReadFile(s.database + "-wal"); err != nil || !bytes.Equal(now, left) {
		t.Errorf("the log of the source has changed: %d bytes of %d (%v)", len(now), len(left), err)
	}
}

// TestCheckWhileServing checks a store whose server is busy.
func TestCheckWhileServing(t *testing.T) {
	t.Parallel()
	s := start(t)
	key := loadKey(t, s.database)
	c := newClient(t, s, key)
	for range 5 {
		for range 20 {
			wantStatus(t, c.do(t, "POST", "/v1/pets", newPetBody("busy", 1, "available")), 201, "")
		}
		if r := run(t, "db", "check", "--database", "sqlite:"+s.database); r.code != 0 || !strings.Contains(r.stderr, " checks passed.") {
			t.Fatalf("db check: %+v", r)
		}
		if r := run(t, "db", "move", "--from", "sqlite:"+s.database, "--to", "sqlite:elsewhere.db"); r.code != 1 || !strings.Contains(r.stderr, "another animalstore serves this file. Stop it first") {
			t.Fatalf("db move while a server runs: %+v", r)
		}
	}
	s.stop()
}

// asked runs a query for one value in PostgreSQL.
func asked[T any](t testing.TB, database, query string) (answer T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if err := conn.QueryRow(ctx, query).Scan(&answer); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return answer
}

// texts are the rows of a query for one text.
func texts(t testing.TB, c *sqlite.Conn, query string) (all []string) {
	t.Helper()
	err := sqlitex.ExecuteTransient(c, query, &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
		all = append(all, stmt.ColumnText(0))
		return nil
	}})
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return all
}

// wantSameContent compares every row of every table of a SQLite file with PostgreSQL,
// and the next ids, one of which it uses. It queries both directly and shares nothing
// with the program's own comparison. It returns the number of rows.
func wantSameContent(t *testing.T, file, database string) (rows int64) {
	t.Helper()
	plain, err := sqlite.OpenConn(file, sqlite.OpenReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	// keys_version identifies a state of one store, so each store has its own.
	tables := texts(t, plain, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' AND name <> 'keys_version'")
	if len(tables) < 8 {
		t.Fatalf("the file has the tables %q, want at least 8", tables)
	}
	for _, table := range tables {
		columns := texts(t, plain, "SELECT name FROM pragma_table_info('"+table+"') ORDER BY cid")
		key := texts(t, plain, "SELECT name FROM pragma_table_info('"+table+"') WHERE pk > 0 ORDER BY pk")
		query := "SELECT " + strings.Join(columns, ", ") + " FROM " + table + " ORDER BY " + strings.Join(key, ", ")
		rows += sameRows(t, plain, conn, query)
	}
	err = sqlitex.ExecuteTransient(plain, "SELECT name, seq FROM sqlite_sequence", &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
		table, want := stmt.ColumnText(0), stmt.ColumnInt64(1)
		if got := asked[int64](t, database, "SELECT nextval('"+table+"_id_seq')"); got != want+1 {
			t.Errorf("the next id of %s is %d, want %d", table, got, want+1)
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// sameRows runs the same query on both and compares the results row by row.
func sameRows(t *testing.T, plain *sqlite.Conn, conn *pgx.Conn, query string) (n int64) {
	t.Helper()
	moved, err := conn.Query(context.Background(), query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer moved.Close()
	differ := 0
	err = sqlitex.ExecuteTransient(plain, query, &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
		n++
		if !moved.Next() {
			return fmt.Errorf("PostgreSQL has fewer than %d rows (%v)", n, moved.Err())
		}
		values, err := moved.Values()
		if err != nil {
			return err
		}
		for i, got := range values {
			if !sameValue(stmt, i, got) {
				if differ++; differ <= 3 {
					t.Errorf("%s: row %d: %s is %v, want %q", query, n, stmt.ColumnName(i), got, stmt.ColumnText(i))
				}
			}
		}
		return nil
	}})
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	if moved.Next() {
		t.Errorf("%s: PostgreSQL has more than %d rows", query, n)
	}
	return n
}

func sameValue(stmt *sqlite.Stmt, i int, got any) bool {
	switch got := got.(type) {
	case int64:
		return got == stmt.ColumnInt64(i)
	case int16:
		return int64(got) == stmt.ColumnInt64(i)
	case string:
		return got == stmt.ColumnText(i)
	case []byte:
		want := make([]byte, stmt.ColumnLen(i))
		stmt.ColumnBytes(i, want)
		return bytes.Equal(got, want)
	}
	return false
}
