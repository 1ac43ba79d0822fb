package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"animalstore/internal/db/postgres/pgtest"
)

// printedCommand is what db backup and db restore say to run for PostgreSQL.
var printedCommand = regexp.MustCompile(`(?m)^  (pg_(?:dump|restore) .*)$`)

// TestPostgresBackup runs the commands that db backup and db restore print, while a
// server adds pets. The restored store is complete, and works.
func TestPostgresBackup(t *testing.T) {
	t.Parallel()
	needs(t, "pg_dump")
	needs(t, "pg_restore")
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
	eventually(t, time.Minute, "pets are added", func() bool { return l.acknowledged.Load() > 0 })

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
		t.Errorf("the first new pet is %s, %v, want an id that nobody has", a.body, err)
	}
}
