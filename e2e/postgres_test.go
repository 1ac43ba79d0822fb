package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"animalstore/internal/db/postgres/pgtest"
	"animalstore/internal/testenv"
)

// TestPostgresFirstRun_Slow: if several instances start at once on an empty database, one
// shows the owner key, which then works on all. Nothing reveals the password.
func TestPostgresFirstRun_Slow(t *testing.T) {
	t.Parallel()
	const password = "hunter2"
	// The test's server doesn't require one.
	database := strings.Replace(pgtest.Shared(t).NewDatabase(t, ""), "animalstore@", "animalstore:"+password+"@", 1)
	var instances []*server
	for range 3 {
		instances = append(instances, launch(t, onDatabase(database)))
	}
	printed := func() (keys []string) {
		for _, s := range instances {
			keys = append(keys, liveKey.FindAllString(s.stdout.String(), 1)...)
		}
		return keys
	}
	for _, s := range instances {
		if !s.awaitServing() {
			t.Fatalf("an instance does not serve.\n%s", s.output())
		}
	}
	testenv.Eventually(t, "an instance shows a key", func() bool { return len(printed()) > 0 })
	key := printed()[0]
	for i, s := range instances {
		c := newClient(t, s, key)
		wantStatus(t, c.do(t, "POST", "/v1/pets", newPetBody(fmt.Sprint("of instance ", i), 1, "available")), 201, "")
		wantStatus(t, c.get(t, "/readyz"), 200, "")
	}
	for i, s := range instances {
		s.stop()
		if strings.Contains(s.output(), password) {
			t.Errorf("instance %d reveals the password:\n%s", i, s.output())
		}
	}
	if all := printed(); len(all) != 1 {
		t.Errorf("%d instances show a key, want one", len(all))
	}
	if r := run(t, "keys", "list", "--database", database); r.code != 0 || strings.Contains(r.stdout+r.stderr, password) {
		t.Errorf("keys list: exit code %d, want 0 and no password\n%s%s", r.code, r.stdout, r.stderr)
	}
}

// printedCommand matches the command that db backup and db restore print for
// PostgreSQL.
var printedCommand = regexp.MustCompile(`(?m)^  (pg_(?:dump|restore) .*)$`)

// TestPostgresBackup_Slow runs the commands that db backup and db restore print, while a
// server adds pets. The restored store is complete and works.
func TestPostgresBackup_Slow(t *testing.T) {
	t.Parallel()
	testenv.Need(t, "pg_dump")
	testenv.Need(t, "pg_restore")
	pg := pgtest.Shared(t)
	database, empty := pg.NewDatabase(t, ""), pg.NewDatabase(t, "")
	seed(t, database, 500)
	key := adminKey(t, database)
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
		output(t, cmd)
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
