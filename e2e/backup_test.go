//go:build linux

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"animalstore/internal/testenv"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// wantState checks that a file is a state that a store, whose server has stopped, was in: it
// has the first pets of the store, among them all that were acknowledged before the copy.
func wantState(t *testing.T, file, database string, acknowledged []pet) {
	t.Helper()
	if r := run(t, "db", "check", "--database", "sqlite:"+file); r.code != 0 {
		t.Errorf("db check: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	const pets = "SELECT id || ' ' || name FROM pets ORDER BY id"
	stored, copied := onCopy(t, database, pets), onCopy(t, file, pets)
	if len(copied) > len(stored) || !slices.Equal(copied, stored[:len(copied)]) {
		t.Errorf("got the pets %.300q, want the first ones of the store: %.300q", copied, stored)
	}
	for _, p := range acknowledged {
		if !slices.Contains(copied, fmt.Sprint(p.ID, " ", p.Name)) {
			t.Fatalf("%d pets were copied, but not %+v, which was acknowledged before", len(copied), p)
		}
	}
}

// TestBackupAndRestore backs up a store while pets are added. The restored store is a
// state that the store was in. A soak also kills the server at different moments.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	rounds := testenv.Count(1, 100)
	database := newDatabase(t)
	key := adminKey(t, database)
	dir := t.TempDir()
	for round := range rounds {
		s := start(t, onDatabase(database))
		l := startLoad(t, s, key, 8, fmt.Sprint("round ", round), 50)
		testenv.Eventually(t, "pets are acknowledged", func() bool { return l.acknowledged.Load() >= 40 })
		file := filepath.Join(dir, fmt.Sprint(round, ".db"))
		before := l.soFar()
		backup := startProgram(t, binary, "db", "backup", file, "--database", "sqlite:"+database)
		if round%3 != 0 {
			time.Sleep(time.Duration(round*7%40) * time.Millisecond)
			s.kill()
		}
		if code := backup.wait(); code != 0 {
			t.Fatalf("round %d: db backup: exit code %d.\n%s", round, code, backup.output())
		}
		l.stop()
		s.kill()
		restored := filepath.Join(dir, fmt.Sprint("restored-", round, ".db"))
		if r := run(t, "db", "restore", file, "--database", "sqlite:"+restored); r.code != 0 {
			t.Fatalf("round %d: db restore: %+v", round, r)
		}
		wantState(t, restored, database, before)
		s = start(t, onDatabase(restored))
		wantStatus(t, newClient(t, s, key).get(t, "/v1/pets"), 200, "")
		s.stop()
		for _, name := range []string{file, restored} {
			if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: mode %v, %v, want 0600", name, info.Mode(), err)
			}
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.partial*")); len(left) > 0 {
		t.Errorf("left over: %q", left)
	}
}

// TestBackupKilled_Slow kills a backup in the middle. There must never be an unfinished
// file under the final name, and the next backup cleans up.
func TestBackupKilled_Slow(t *testing.T) {
	t.Parallel()
	database := newDatabase(t)
	seed(t, database, 20_000)
	file := filepath.Join(t.TempDir(), "copy.db")
	partial := 0
	for range testenv.Count(3, 200) {
		backup := startProgram(t, binary, "db", "backup", file, "--database", "sqlite:"+database)
		testenv.Eventually(t, "the copy grows", func() bool {
			info, err := os.Stat(file + ".partial")
			return err == nil && info.Size() > 0 || backup.ended()
		})
		backup.kill()
		if exists(file + ".partial") {
			partial++
		}
		if exists(file) { // it was already complete
			if r := run(t, "db", "check", "--database", "sqlite:"+file); r.code != 0 {
				t.Fatalf("the file under the final name is not a complete copy: %+v", r)
			}
			os.Remove(file)
		}
	}
	if partial == 0 {
		t.Error("no backup was killed in the middle")
	}
	if r := run(t, "db", "backup", file, "--database", "sqlite:"+database); r.code != 0 {
		t.Errorf("a backup after those that were killed: %+v", r)
	}
	if exists(file + ".partial") {
		t.Error("the leftovers of a killed backup were not removed")
	}
}

// TestBackupOnAFullDisk_Slow: a backup that doesn't fit leaves nothing behind.
func TestBackupOnAFullDisk_Slow(t *testing.T) {
	t.Parallel()
	database := newDatabase(t)
	seed(t, database, 20_000)
	file := filepath.Join(tmpfs(t, 1<<20), "copy.db")
	if r := run(t, "db", "backup", file, "--database", "sqlite:"+database); r.code != 1 || !strings.Contains(r.stderr, "full") {
		t.Errorf("got %+v, want exit code 1 and that the disk is full", r)
	}
	if left, _ := filepath.Glob(file + "*"); len(left) > 0 {
		t.Errorf("left over: %q", left)
	}
}

// query runs SQL on a file and returns the first column of its rows.
func query(t *testing.T, file, sql string) (values []string) {
	t.Helper()
	conn, err := sqlite.OpenConn(file, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetBusyTimeout(testenv.Deadline)
	err = sqlitex.ExecuteTransient(conn, sql, &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
		values = append(values, stmt.ColumnText(0))
		return nil
	}})
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return values
}
