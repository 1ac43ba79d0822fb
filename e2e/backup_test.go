//go:build linux

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"animalstore/internal/testenv"
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
	for _, name := range petNames(t, database) {
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

// petNames reads the names of all pets from a file.
func petNames(t *testing.T, database string) []string {
	t.Helper()
	out, err := exec.Command("sqlite3", "-readonly", database, "SELECT name FROM pets").Output()
	if err != nil {
		t.Fatalf("read %s: %v", database, err)
	}
	return strings.Fields(string(out))
}

// TestBackupsUnderLoad repeatedly backs up a store while pets are added and the server
// is killed. Each complete backup is restored and must be a state that the store was
// in.
func TestBackupsUnderLoad(t *testing.T) {
	t.Parallel()
	testenv.Need(t, "sqlite3")
	rounds := testenv.Count(3, 100)
	database := newDatabase(t)
	key := loadKey(t, database)
	l := &ledgerOfNumbers{sent: make([]int, 8), acknowledged: make([]int, 8)}
	dir := t.TempDir()
	killedDuring := 0
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
		if round%3 != 2 { // the server is killed at different moments of the backup
			time.Sleep(time.Duration(round*7%40) * time.Millisecond)
			if !backup.ended() {
				killedDuring++
			}
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
		for _, name := range []string{file, restored} {
			if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: mode %v, %v, want 0600", name, info.Mode(), err)
			}
			os.Remove(name)
		}
		for _, suffix := range []string{".lock", "-shm", "-wal"} { // the last two are of db check
			os.Remove(restored + suffix)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("left over: %q", left)
	}
	sent, acknowledged := l.counts()
	t.Logf("%d backups, %d while the server was killed; of each writer %v pets sent, %v acknowledged", rounds, killedDuring, sent, acknowledged)
}

// startCommand starts a command of the binary in the background.
func startCommand(t testing.TB, args ...string) *server {
	t.Helper()
	return startProgram(t, append([]string{binary}, args...)...)
}

// TestBackupKilled kills a backup at many moments. There must never be an unfinished
// file under the final name, and the next backup cleans up.
func TestBackupKilled(t *testing.T) {
	t.Parallel()
	rounds := testenv.Count(6, 200)
	database := newDatabase(t)
	if r := run(t, "seed", "--pets", "20000", "--database", "sqlite:"+database); r.code != 0 {
		t.Fatalf("seed: %+v", r)
	}
	file := filepath.Join(t.TempDir(), "copy.db")
	partial, complete := 0, 0
	for round := range rounds {
		backup := startCommand(t, "db", "backup", file, "--database", "sqlite:"+database)
		if round%2 == 0 { // in the middle of it, else at any moment
			testenv.Eventually(t, "the copy grows", func() bool {
				info, err := os.Stat(file + ".partial")
				return err == nil && info.Size() > 0 || backup.ended()
			})
		} else {
			time.Sleep(time.Duration(round*11%150) * time.Millisecond)
		}
		backup.kill()
		if _, err := os.Stat(file + ".partial"); err == nil {
			partial++
		}
		if _, err := os.Stat(file); err == nil { // it was already complete
			complete++
			if r := run(t, "db", "check", "--database", "sqlite:"+file); r.code != 0 {
				t.Fatalf("round %d: the file under the final name is not a complete copy: %+v", round, r)
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
	if _, err := os.Stat(file + ".partial"); err == nil {
		t.Error("the leftovers of a killed backup were not removed")
	}
	t.Logf("%d killed: %d left an unfinished file, %d a complete one", rounds, partial, complete)
}

// TestBackupOnAFullDisk: a backup that doesn't fit leaves nothing behind, whether that
// is known in advance or found out in the middle.
func TestBackupOnAFullDisk(t *testing.T) {
	t.Parallel()
	database := newDatabase(t)
	if r := run(t, "seed", "--pets", "40000", "--database", "sqlite:"+database); r.code != 0 {
		t.Fatalf("seed: %+v", r)
	}
	dir := tmpfs(t, 20<<20)
	file, ballast := filepath.Join(dir, "copy.db"), filepath.Join(dir, "ballast")
	wantNothing := func(when string, r result) {
		t.Helper()
		if r.code != 1 || !strings.Contains(r.stderr, "the disk of the new file is full. No backup was made, and the store is unchanged. Free some space") {
			t.Errorf("%s: got %+v, want exit code 1 and advice", when, r)
		}
		if left, _ := filepath.Glob(file + "*"); len(left) > 0 {
			t.Errorf("%s: left over: %q", when, left)
		}
	}
	fill(t, ballast, 1<<20)
	r := run(t, "db", "backup", file, "--database", "sqlite:"+database)
	if wantNothing("known before", r); !strings.Contains(r.stderr, "the copy needs") {
		t.Errorf("got %s, want the required space", r.stderr)
	}
	os.Remove(ballast)
	// Part of the store is still in the log, so its file looks as if it would fit.
	s := start(t, onDatabase(database))
	hold := exec.Command("sqlite3", "-readonly", database)
	stdin, err := hold.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := hold.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { stdin.Close(); hold.Wait() }()
	fmt.Fprintln(stdin, "BEGIN; SELECT count(*) FROM pets;")
	info, err := os.Stat(database)
	if err != nil {
		t.Fatal(err)
	}
	l := startLoad(t, s, loadKey(t, database), 4, "in the log", 4000)
	testenv.Eventually(t, "the log grows", func() bool { return l.acknowledged.Load() >= 300 })
	l.stop()
	fill(t, ballast, info.Size()+256<<10)
	wantNothing("in the middle", run(t, "db", "backup", file, "--database", "sqlite:"+database))
	os.Remove(ballast)
	if r := run(t, "db", "backup", file, "--database", "sqlite:"+database); r.code != 0 {
		t.Errorf("with space: %+v", r)
	}
}

// TestScheduledBackups: a server makes backups by itself and keeps the newest, and a
// restart adds none before the next is due.
func TestScheduledBackups(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bystander := filepath.Join(dir, "store-yesterday.db")
	if err := os.WriteFile(bystander, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	unfinished := filepath.Join(dir, "store-20260102T030405Z.db.partial")
	if err := os.WriteFile(unfinished, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	database := newDatabase(t)
	backups := func() []string {
		files, _ := filepath.Glob(filepath.Join(dir, "store-2*.db"))
		return files
	}
	s := start(t, onDatabase(database), withEnv("ANIMALSTORE_BACKUP_DIR="+dir, "ANIMALSTORE_BACKUP_EVERY=1s", "ANIMALSTORE_BACKUP_KEEP=2"))
	testenv.Eventually(t, "four backups are made", func() bool { return strings.Count(s.stderr.String(), `msg="backed up"`) >= 4 })
	second := launch(t, withArgs("--backup-dir", dir))
	if code := second.wait(); code != 1 || !strings.Contains(second.stderr.String(), "give each server its own directory") {
		t.Errorf("a second server with the same directory: exit code %d, want 1 and advice.\n%s", code, second.output())
	}
	s.stop()
	if files := backups(); len(files) != 2 {
		t.Errorf("got %q, want the newest 2", files)
	}
	if r := run(t, "db", "restore", backups()[1], "--database", "sqlite:"+newDatabase(t)); r.code != 0 {
		t.Errorf("db restore: %+v", r)
	}
	if _, err := os.Stat(unfinished); err == nil {
		t.Error("the leftovers of a killed server were not removed")
	}
	if _, err := os.Stat(bystander); err != nil {
		t.Errorf("a file that isn't a backup of the server: %v", err)
	}
	before := fmt.Sprint(backups())
	s = start(t, onDatabase(database), withArgs("--backup-dir", dir, "--backup-every", "1h"))
	key := loadKey(t, database)
	wantStatus(t, newClient(t, s, key).get(t, "/v1/pets"), 200, "")
	s.stop()
	// If the stop had interrupted a backup, the log would say so.
	if after := fmt.Sprint(backups()); after != before || strings.Contains(s.stderr.String(), "backup cancelled") {
		t.Errorf("a restart within the hour: got %s, want %s.\n%s", after, before, s.stderr)
	}
}

// TestBackupOfALargeStore measures how a backup of half a gigabyte affects writers, and
// bounds it: no write may wait for the whole copy, and the log must shrink again.
func TestBackupOfALargeStore(t *testing.T) {
	testenv.OnlySoak(t, "fills a store of 500 MB")
	database := newDatabase(t)
	if r := run(t, "seed", "--pets", "4000000", "--database", "sqlite:"+database); r.code != 0 {
		t.Fatalf("seed: %+v", r)
	}
	key := loadKey(t, database)
	s := start(t, onDatabase(database))
	l := startLoad(t, s, key, 32, "large", 100)
	slowest := watchWrites(t, s, key)
	size := highestSize(database + "-wal")
	time.Sleep(10 * time.Second)
	alone, aloneSize, before := slowest(), size(), l.acknowledged.Load()

	slowest, size = watchWrites(t, s, key), highestSize(database+"-wal")
	file := filepath.Join(t.TempDir(), "copy.db")
	began := time.Now()
	backup := startCommand(t, "db", "backup", file, "--database", "sqlite:"+database)
	// Once it is copied, it is only checked, which takes minutes.
	info, err := os.Stat(database)
	if err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "the store is copied", func() bool {
		copied, err := os.Stat(file + ".partial")
		return err == nil && copied.Size() >= info.Size() || backup.ended()
	})
	took := time.Since(began)
	time.Sleep(5 * time.Second) // the log is moved into the database
	during, duringSize := slowest(), size()
	after, err := os.Stat(database + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("without a backup: up to %v a write, %d MB of log, %d pets in 10 s", alone, aloneSize>>20, before)
	t.Logf("with a backup: up to %v a write, %d MB of log, then %d MB; copied in %v, %d pets", during, duringSize>>20, after.Size()>>20, took, l.acknowledged.Load()-before)
	if limit := 5 * time.Second; during > limit+alone {
		t.Errorf("a write took %v during a backup, want at most %v", during, limit+alone)
	}
	if after.Size() > 128<<20 {
		t.Errorf("the log has %d MB after the backup, want at most 128", after.Size()>>20)
	}
	l.stop()
	if n := l.unanswered.Load(); n > 0 || len(l.refusals()) > 0 {
		t.Errorf("%d requests were not answered, %v were refused, want none", n, fmt.Sprint(l.refusals()))
	}
	backup.kill()
}

// TestRestoreKilledBeforeItsName kills "db restore" just before it gives the store its
// name. By then webhooks are paused, and the next run replaces the leftovers.
func TestRestoreKilledBeforeItsName(t *testing.T) {
	t.Parallel()
	needsStrace(t)
	testenv.Need(t, "sqlite3")
	dir := t.TempDir()
	backup, store := filepath.Join(dir, "backup.db"), filepath.Join(dir, "store.db")
	if r := run(t, "seed", "--pets", "100", "--database", "sqlite:"+backup); r.code != 0 {
		t.Fatalf("seed: %+v", r)
	}
	query(t, backup, `WITH ids(id) AS (VALUES (1), (2)) INSERT INTO webhooks
		SELECT id, 'https://example.com/', 'pet.*', '', 0, '', 'whsec_b25l', '', 0, 1000, 0, 0, 0, 0, 0 FROM ids`)
	restore := []string{"db", "restore", backup, "--database", "sqlite:" + store}
	argv := append([]string{"-f", "-o", os.DevNull, "-e", "trace=renameat2", "-e", "inject=renameat2:signal=KILL", binary}, restore...)
	if out, err := exec.Command("strace", argv...).CombinedOutput(); err == nil {
		t.Fatalf("restore was not killed:\n%s", out)
	}
	if exists(store) {
		t.Fatal("the store has its name, so the kill came too late")
	}
	const states = "SELECT group_concat(state) FROM webhooks"
	if got := query(t, store+".partial", states); got != "1,1" {
		t.Errorf("before the store has its name, its webhooks are in the states %s, want all paused", got)
	}
	// A kill in the middle of pausing leaves this file.
	if err := os.WriteFile(store+".partial-wal", []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := run(t, restore...); r.code != 0 || !strings.Contains(r.stderr, "Paused 2 webhooks") {
		t.Errorf("restore after a kill: %+v", r)
	}
	if got := query(t, store, states); got != "1,1" {
		t.Errorf("the webhooks of the restored store are in the states %s, want all paused", got)
	}
	if left, _ := filepath.Glob(store + ".partial*"); len(left) > 0 {
		t.Errorf("left over: %q", left)
	}
}

// query runs SQL on a file that no server uses.
func query(t *testing.T, file, sql string) string {
	t.Helper()
	cmd := exec.Command("sqlite3", "-bail", file)
	cmd.Stdin = strings.NewReader(sql)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", sql, err, out)
	}
	return strings.TrimSpace(string(out))
}
