package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"animalstore"
	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// wantRefused checks that path can't be opened, and why: 0 is a reason without a name.
func wantRefused(t *testing.T, path string, opts Options, reason db.OpenReason) {
	t.Helper()
	d, err := Open(t.Context(), path, opts)
	if err == nil {
		d.Close()
		t.Fatalf("Open(%s) succeeded, want an error", path)
	}
	var refused *db.OpenError
	if errors.As(err, &refused) != (reason != 0) || refused != nil && refused.Reason != reason {
		t.Errorf("Open(%s): %v, want the reason %d", path, err, reason)
	}
}

// script creates or changes a SQLite file.
func script(t *testing.T, path, sql string) {
	t.Helper()
	c, err := sqlite.OpenConn(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := sqlitex.ExecuteScript(c, sql, nil); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// TestOpenLeavesOtherFilesAlone: a file that isn't ours is refused and not changed.
func TestOpenLeavesOtherFilesAlone(t *testing.T) {
	path := func(name string) string { return filepath.Join(t.TempDir(), name) }
	notes, tagged, tables, wal := path("notes.txt"), path("id.db"), path("tables.db"), path("wal.db")
	if err := os.WriteFile(notes, bytes.Repeat([]byte("Dear diary, today I fed the bear.\n"), 100), 0o600); err != nil {
		t.Fatal(err)
	}
	script(t, tagged, "PRAGMA application_id = 42")
	script(t, tables, "CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)")
	script(t, wal, "PRAGMA journal_mode = WAL; CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)")
	for _, path := range []string{notes, tagged, tables, wal} {
		before := readFile(t, path)
		wantRefused(t, path, Options{Serve: true}, db.Foreign)
		wantRefused(t, path, Options{MustExist: true}, db.Foreign)
		if !bytes.Equal(readFile(t, path), before) {
			t.Errorf("%s was changed", path)
		}
	}
}

// TestOpenRefusesDevelopmentVersions: a file whose tables have changed in place since is
// refused and not changed.
func TestOpenRefusesDevelopmentVersions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	script(t, path, fmt.Sprintf("PRAGMA application_id = %d; CREATE TABLE pets (id)", schema.AppID^1))
	before := readFile(t, path)
	if d, err := Open(t.Context(), path, Options{}); !errors.Is(err, db.ErrDevelopment) {
		t.Errorf("got %v, %v, want ErrDevelopment", d, err)
	}
	if !bytes.Equal(readFile(t, path), before) {
		t.Error("the file was changed")
	}
}

// TestOpenAfterStartCutOff: the very first start uses a rollback journal. If it is
// killed, the next start has to roll back.
func TestOpenAfterStartCutOff(t *testing.T) {
	dir := t.TempDir()
	running, killed := filepath.Join(dir, "running.db"), filepath.Join(dir, "killed.db")
	c, err := sqlite.OpenConn(running, sqlite.OpenReadWrite|sqlite.OpenCreate)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, sql := range []string{
		fmt.Sprintf("PRAGMA application_id = %d", schema.AppID),
		"PRAGMA cache_size = 1", // so that it writes before the transaction ends
		"BEGIN",
		"CREATE TABLE half (x)",
		"INSERT INTO half WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 100) SELECT zeroblob(3000) FROM n",
	} {
		if err := sqlitex.ExecuteTransient(c, sql, nil); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	for _, suffix := range []string{"", "-journal"} {
		if err := os.WriteFile(killed+suffix, readFile(t, running+suffix), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mustOpen(t, killed, Options{Serve: true})
}

func TestOpenRefusesWhatCannotBeAFile(t *testing.T) {
	dir := t.TempDir()
	wantRefused(t, dir, Options{}, 0)
	wantRefused(t, filepath.Join(dir, "absent", "store.db"), Options{}, 0)
	absent := filepath.Join(dir, "absent.db")
	wantRefused(t, absent, Options{MustExist: true}, db.Absent)
	if _, err := os.Stat(absent); !os.IsNotExist(err) {
		t.Errorf("MustExist created the file: %v", err)
	}
}

func TestOpenRefusesSecondServer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	d := mustOpen(t, path, Options{Serve: true})
	wantRefused(t, path, Options{Serve: true}, db.Served)
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, link, Options{Serve: true}, db.Served)
	mustOpen(t, path, Options{MustExist: true}) // a command may open it alongside the server
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	mustOpen(t, path, Options{Serve: true}).Close() // closing releases the lock
}

func TestFilesAreTheOwnersAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	d := mustOpen(t, path, Options{Serve: true})
	if _, _, err := d.CreatePet(t.Context(), animalstore.NewPet{Name: "Rex", CategoryID: 1}, nil); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"", "-wal", "-shm", ".lock"} {
		info, err := os.Stat(path + suffix)
		if err != nil {
			t.Error(err)
		} else if mode := info.Mode().Perm(); mode != 0o600 {
			t.Errorf("store.db%s has mode %o, want 600", suffix, mode)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"-wal", "-shm"} {
		if _, err := os.Stat(path + suffix); !os.IsNotExist(err) {
			t.Errorf("store.db%s is left after Close: %v", suffix, err)
		}
	}
}
