//go:build linux

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"animalstore/internal/testenv"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// ledgerOfNumbers records, for each writer, its pets in order. Writers number their
// pets, so any state of the store contains the first few of each writer.
type ledgerOfNumbers struct {
	mu           sync.Mutex
	sent         []int // by writer: how many were sent
	acknowledged []int // by writer: how many of them were acknowledged
}

func (l *ledgerOfNumbers) counts() (sent, acknowledged []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]int(nil), l.sent...), append([]int(nil), l.acknowledged...)
}

// write lets every writer add pets until the server is gone or stop is closed. If a
// writer's last pet was not acknowledged, it sends it again before it continues.
func (l *ledgerOfNumbers) write(t *testing.T, s *server, key string, stop chan struct{}) *sync.WaitGroup {
	wg := new(sync.WaitGroup)
	for w := range l.sent {
		c := newClient(t, s, key)
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				l.mu.Lock()
				n := l.sent[w]
				if l.acknowledged[w] < n { // sent again, under the same idempotency key
					n--
				} else {
					l.sent[w]++
				}
				l.mu.Unlock()
				a, err := c.try("POST", "/v1/pets", newPetBody(fmt.Sprintf("%d/%d", w, n), int64(w), "available"), "Idempotency-Key", fmt.Sprintf("backup-%d-%d", w, n))
				if err != nil {
					return // the server is gone
				}
				if a.status != 201 {
					t.Errorf("writer %d, pet %d: got %d %s, want 201", w, n, a.status, a.body)
					return
				}
				l.mu.Lock()
				l.acknowledged[w] = n + 1
				l.mu.Unlock()
			}
		})
	}
	return wg
}

// wantState checks that a store contains the first pets of each writer and no others:
// at least those acknowledged before the copy began, at most those sent before it
// ended.
func wantState(t *testing.T, database string, least, most []int) {
	t.Helper()
	r := run(t, "db", "check", "--database", "sqlite:"+database)
	if r.code != 0 {
		t.Errorf("db check: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	found := make([]map[int]bool, len(least))
	for w := range found {
		found[w] = map[int]bool{}
	}
	for _, name := range query(t, database, "SELECT name FROM pets") {
		var w, n int
		if _, err := fmt.Sscanf(name, "%d/%d", &w, &n); err != nil || found[w][n] {
			t.Fatalf("pet %q is stored twice, or was never sent", name)
		}
		found[w][n] = true
	}
	for w, numbers := range found {
		for n := range len(numbers) {
			if !numbers[n] {
				t.Fatalf("writer %d has %d pets, but not number %d", w, len(numbers), n)
			}
		}
		if len(numbers) < least[w] || len(numbers) > most[w] {
			t.Errorf("writer %d has %d pets, want at least the %d acknowledged before and at most the %d sent", w, len(numbers), least[w], most[w])
		}
	}
}

// TestBackupAndRestore backs up a store while pets are added. The restored store is a
// state that the store was in. A soak also kills the server at different moments.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	rounds := testenv.Count(1, 100)
	database := newDatabase(t)
	key := loadKey(t, database)
	l := &ledgerOfNumbers{sent: make([]int, 8), acknowledged: make([]int, 8)}
	dir := t.TempDir()
	for round := range rounds {
		s := start(t, onDatabase(database))
		stop := make(chan struct{})
		writers := l.write(t, s, key, stop)
		_, before := l.counts()
		testenv.Eventually(t, "pets are acknowledged", func() bool {
			_, now := l.counts()
			return now[0] >= before[0]+5
		})
		file := filepath.Join(dir, fmt.Sprint(round, ".db"))
		_, least := l.counts()
		backup := startCommand(t, "db", "backup", file, "--database", "sqlite:"+database)
		if round%3 != 0 {
			time.Sleep(time.Duration(round*7%40) * time.Millisecond)
			s.kill()
		}
		if code := backup.wait(); code != 0 {
			t.Fatalf("round %d: db backup: exit code %d.\n%s", round, code, backup.output())
		}
		most, _ := l.counts()
		close(stop)
		writers.Wait()
		s.kill()
		restored := filepath.Join(dir, fmt.Sprint("restored-", round, ".db"))
		if r := run(t, "db", "restore", file, "--database", "sqlite:"+restored); r.code != 0 {
			t.Fatalf("round %d: db restore: %+v", round, r)
		}
		wantState(t, restored, least, most)
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

// startCommand starts a command of the binary in the background.
func startCommand(t testing.TB, args ...string) *server {
	t.Helper()
	return startProgram(t, append([]string{binary}, args...)...)
}

// TestBackupKilled_Slow kills a backup in the middle. There must never be an unfinished
// file under the final name, and the next backup cleans up.
func TestBackupKilled_Slow(t *testing.T) {
	t.Parallel()
	database := newDatabase(t)
	if r := run(t, "seed", "--pets", "20000", "--database", "sqlite:"+database); r.code != 0 {
		t.Fatalf("seed: %+v", r)
	}
	file := filepath.Join(t.TempDir(), "copy.db")
	partial := 0
	for range testenv.Count(3, 200) {
		backup := startCommand(t, "db", "backup", file, "--database", "sqlite:"+database)
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
	if r := run(t, "seed", "--pets", "20000", "--database", "sqlite:"+database); r.code != 0 {
		t.Fatalf("seed: %+v", r)
	}
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
