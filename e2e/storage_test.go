//go:build linux

package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"animalstore/internal/testenv"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// tmpfs is a file system of a few megabytes.
func tmpfs(t *testing.T, size int) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		testenv.Missing(t, "a full disk needs a small file system, which only root can mount: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
	return dir
}

// fill creates a file that leaves the given number of bytes free on its file system.
func fill(t *testing.T, path string, leave int64) {
	t.Helper()
	var fs syscall.Statfs_t
	if err := syscall.Statfs(filepath.Dir(path), &fs); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// The server writes meanwhile, so there may be less space than was free.
	free := int64(fs.Bavail)*fs.Bsize - leave
	for block := make([]byte, 4096); free > 0; free -= int64(len(block)) {
		if _, err := f.Write(block); err != nil {
			if !errors.Is(err, syscall.ENOSPC) {
				t.Fatal(err)
			}
			return
		}
	}
}

// TestDiskFull fills the disk under a server and frees it again, many times.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	rounds := testenv.Count(4, 40)
	dir := tmpfs(t, 48<<20)
	database := filepath.Join(dir, "store.db")
	key := loadKey(t, database)
	s := start(t, onDatabase(database))
	defer func() {
		if t.Failed() {
			t.Log(s.output())
		}
	}()
	c := newClient(t, s, key)
	acknowledged := newLedger()
	refused := 0
	for round := range rounds {
		ballast := filepath.Join(dir, "ballast")
		busy := watchAlive(t, s)
		l := startLoad(t, s, key, 4, fmt.Sprint("round ", round), 4000)
		testenv.Eventually(t, "writes work", func() bool { return l.acknowledged.Load() >= 50 })
		// The remaining space varies, so that the disk fills up at a different point in
		// each round.
		fill(t, ballast, int64(round)*13*4096)
		testenv.Eventually(t, "writes are refused because the disk is full", func() bool { return l.refusals()["storage_full"] >= 50 })
		// This doesn't change while the disk is full: at most an occasional write still
		// finds space, and all kinds of reads work.
		full := l.refusals()["storage_full"]
		readWhileFull(t, s, c, l)
		testenv.Eventually(t, "writes are still refused", func() bool { return l.refusals()["storage_full"] >= full+50 })
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
		freed := l.acknowledged.Load()
		testenv.Eventually(t, "writes work again without a restart", func() bool { return l.acknowledged.Load() >= freed+50 })
		for _, p := range l.stop() {
			if err := acknowledged.add(p); err != nil {
				t.Error(err)
			}
		}
		if slowest, allowed := time.Duration(l.slowest.Load()), 5*time.Second+busy(); slowest > allowed {
			t.Errorf("round %d: the slowest write took %v, want at most %v", round, slowest, allowed)
		}
		for code, n := range l.refusals() {
			if refused += n; code != "storage_full" {
				t.Errorf("round %d: %d writes were refused with %q, want storage_full", round, n, code)
			}
		}
		if n := l.unanswered.Load(); n > 0 {
			t.Fatalf("round %d: %d requests were not answered.\n%s", round, n, s.output())
		}
	}
	if n, which := acknowledged.missing(c.allPets(t, 0), 0); n > 0 {
		t.Errorf("%d acknowledged pets are lost or changed, such as %.300q", n, which)
	}
	s.stop()
	if got := integrity(t, database); got != "ok" {
		t.Errorf("the file is damaged: %s", got)
	}
	s = start(t, onDatabase(database))
	if n, which := acknowledged.missing(newClient(t, s, key).allPets(t, 0), 0); n > 0 {
		t.Errorf("%d acknowledged pets are lost or changed after a restart, such as %.300q", n, which)
	}
	s.stop()
	t.Logf("%d rounds, %d pets acknowledged, %d writes refused", rounds, len(acknowledged.pets), refused)
}

// readWhileFull reads in every possible way.
func readWhileFull(t *testing.T, s *server, c *client, l *load) {
	t.Helper()
	busy := watchAlive(t, s)
	took := map[string]time.Duration{}
	l.mu.Lock()
	last := l.pets[len(l.pets)-1]
	l.mu.Unlock()
	a := c.get(t, fmt.Sprintf("/v1/pets/%d", last.ID))
	wantStatus(t, a, 200, "")
	if got, err := decodePet(a.body); err != nil || got != last {
		t.Errorf("got %.200s, want %+v", a.body, last)
	}
	for _, path := range []string{"/v1/pets", "/v1/pets?limit=100", "/v1/pets?status=sold", "/v1/store/orders", "/readyz", "/livez"} {
		begun := time.Now()
		wantStatus(t, c.get(t, path), 200, "")
		took[path] = time.Since(begun)
	}
	allowed := 5*time.Second + busy()
	for path, took := range took {
		if took > allowed {
			t.Errorf("GET %s took %v on a full disk, want at most %v", path, took, allowed)
		}
	}
	if all := c.allPets(t, last.ID-200); all[last.ID] != last {
		t.Errorf("the list has %+v, want %+v", all[last.ID], last)
	}
}

// wantStorageFailure waits until a server has stopped because of its storage.
func (s *server) wantStorageFailure(said ...string) {
	s.t.Helper()
	testenv.Eventually(s.t, "the server stops", s.ended)
	log := s.stderr.String()
	for _, want := range append(said, "level=ERROR", "storage failed", "animalstore db check", "restore a backup") {
		if !strings.Contains(log, want) {
			s.t.Errorf("the log doesn't say %q.\n%s", want, s.output())
		}
	}
	if code := s.wait(); code != 1 || strings.Contains(log, "goroutine ") {
		s.t.Errorf("exit code %d, want 1 and no stack.\n%s", code, s.output())
	}
}

// TestStorageLost removes and replaces the files of a running server, which notices without
// a request.
func TestStorageLost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lose func(database string) error
		said string
	}{
		"removed":      {os.Remove, "store.db was removed"},
		"renamed":      {func(db string) error { return os.Rename(db, db+".old") }, "store.db was removed"},
		"renamed over": {func(db string) error { return renameOver(db) }, "store.db was replaced"},
		"log removed":  {func(db string) error { return os.Remove(db + "-wal") }, "store.db-wal was removed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			if err := c.lose(s.database); err != nil {
				t.Fatal(err)
			}
			lost := time.Now()
			s.wantStorageFailure(c.said)
			t.Logf("noticed after %v", time.Since(lost))
		})
	}
}

func renameOver(database string) error {
	if err := copyFile(database, database+".copy"); err != nil {
		return err
	}
	return os.Rename(database+".copy", database)
}

// TestReadError makes every read system call of a running server fail. What it responds
// is what is stored, or an error.
func TestReadError(t *testing.T) {
	t.Parallel()
	needsStrace(t)
	s := start(t)
	key := loadKey(t, s.database)
	c := newClient(t, s, key)
	wantStatus(t, c.do(t, "POST", "/v1/pets", newPetBody("Rex", 1, "sold")), 201, "")
	defer s.inject("pread64", "error=EIO")()
	// A background write may meet the fault as well, and stop the server.
	for n := 0; !s.ended() && n < 100; n++ {
		for _, path := range []string{"/v1/pets", "/v1/pets/1"} {
			if a, err := c.try("GET", path, ""); err == nil && a.status < 500 && (a.status != 200 || !strings.Contains(a.body, "Rex")) {
				t.Errorf("GET %s: got %d %s, want what is stored, or an error", path, a.status, a.body)
			}
		}
	}
}

// TestDamagedRow: a damaged row fails the requests that read it, and nothing else. The log
// and "db check" name it.
func TestDamagedRow(t *testing.T) {
	t.Parallel()
	testenv.Need(t, "sqlite3")
	s := start(t, withOps())
	c := newClient(t, s, loadKey(t, s.database))
	for range 2 {
		wantStatus(t, c.do(t, "POST", "/v1/pets", newPetBody("Rex", 1, "sold")), 201, "")
	}
	query(t, s.database, "UPDATE pets SET name = '' WHERE id = 1")
	wantStatus(t, c.get(t, "/v1/pets/1"), 500, "internal_error")
	wantStatus(t, c.get(t, "/v1/pets/2"), 200, "")
	if log := s.stderr.String(); !strings.Contains(log, "pet 1") {
		t.Errorf("the log doesn't name the pet.\n%s", s.output())
	}
	if counted := `animalstore_http_errors_total{code="internal_error"} 1`; !strings.Contains(s.metrics(), counted) {
		t.Errorf("the metrics don't have %s", counted)
	}
	if r := run(t, "db", "check", "--database", databaseFlag(s.database)); r.code != 1 || !strings.Contains(r.stdout+r.stderr, "pet 1") {
		t.Errorf("db check: exit code %d, want 1 and the pet.\n%s%s", r.code, r.stdout, r.stderr)
	}
	s.stop()
}

// inject makes a system call of a running server fail or hang, until it is stopped.
func (s *server) inject(calls, what string) (stop func()) {
	s.t.Helper()
	pid := s.cmd.Process.Pid
	strace := exec.Command("strace", "-f", "-p", fmt.Sprint(pid), "-o", os.DevNull, "-e", "trace="+calls, "-e", "inject="+calls+":"+what)
	strace.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := strace.Start(); err != nil {
		s.t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		strace.Process.Kill()
		strace.Wait()
	})
	s.t.Cleanup(stop)
	testenv.Eventually(s.t, "every thread is traced", func() bool { return s.ended() || traced(pid) })
	return stop
}

// traced reports whether all threads of a process are traced.
func traced(pid int) bool {
	all, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	for _, file := range all {
		status, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(status), "TracerPid:\t0\n") {
			return false
		}
	}
	return len(all) > 0
}

// TestOneServer: a file has only one server, whatever name is used for it and whatever
// happens to the lock file.
func TestOneServer(t *testing.T) {
	t.Parallel()
	s := start(t)
	refused := func(what, database string) {
		t.Helper()
		second := launch(t, onDatabase(database))
		if second.awaitServing() {
			t.Errorf("%s: a second server started", what)
			second.kill()
			return
		}
		if code, log := second.wait(), second.stderr.String(); code != 1 || !strings.Contains(log, "another animalstore serves this file") && !strings.Contains(log, "uses under another name") {
			t.Errorf("%s: exit code %d, want 1 and the reason.\n%s", what, code, second.output())
		}
	}
	refused("the same name", s.database)
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Link(s.database, link); err != nil {
		t.Fatal(err)
	}
	refused("a hard link", link)
	for _, command := range [][]string{
		{"keys", "create", "--name", "x"}, {"keys", "list"}, {"seed", "--pets", "10"}, {"db", "check"},
	} {
		if r := run(t, append(command, "--database", "sqlite:"+link)...); r.code == 0 {
			t.Errorf("%v through a hard link worked beside a server: it would use another log", command)
		}
	}
	if err := os.Remove(s.database + ".lock"); err != nil {
		t.Fatal(err)
	}
	refused("without the lock file", s.database)
	if r := run(t, "seed", "--pets", "10", "--database", "sqlite:"+s.database); r.code == 0 {
		t.Error("seed worked beside a server whose lock file was deleted")
	}
	newKey(t, s.database, "--name", "beside") // commands still work under the file's own name
	s.kill()                                  // leaves no lock
	if got := integrity(t, s.database); got != "ok" {
		t.Errorf("the file is damaged: %s", got)
	}
	start(t, onDatabase(s.database)).stop() // the other name alone does no harm
}

// lockDatabase prevents all other processes from writing until release is called.
func lockDatabase(t *testing.T, database string) (release func()) {
	t.Helper()
	conn, err := sqlite.OpenConn(database, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	conn.SetBusyTimeout(20 * time.Second)
	if err := sqlitex.Execute(conn, "BEGIN IMMEDIATE", nil); err != nil {
		t.Fatal(err)
	}
	release = sync.OnceFunc(func() { conn.Close() })
	t.Cleanup(release)
	return release
}

// TestForeignLock: while another process prevents the server from writing, every change
// is refused in the same way, and no refused change is stored. The counts of the
// requests are saved at shutdown, once the lock is released.
func TestForeignLock(t *testing.T) {
	t.Parallel()
	s := start(t)
	key := loadKey(t, s.database)
	c := newClient(t, s, key)
	wantStatus(t, c.get(t, "/v1/pets"), 200, "")
	release := lockDatabase(t, s.database)
	const writes = 6
	var wg sync.WaitGroup
	for i := range writes {
		wg.Go(func() { // one after the other, so that some have to queue
			time.Sleep(time.Duration(i) * 300 * time.Millisecond)
			a := newClient(t, s, key).do(t, "POST", "/v1/pets", newPetBody(fmt.Sprint(i), 1, "sold"))
			wantStatus(t, a, 503, "unavailable")
			if a.header.Get("Retry-After") == "" {
				t.Error("503 without Retry-After")
			}
		})
	}
	wg.Wait()
	s.signal(syscall.SIGTERM)
	asked := time.Now()
	time.Sleep(6 * time.Second) // longer than one attempt to save takes
	if s.ended() {
		t.Fatalf("the server stopped without saving its counts.\n%s", s.output())
	}
	release()
	if code, took := s.wait(), time.Since(asked); code != 0 || took > 30*time.Second {
		t.Errorf("exit code %d after %v, want 0 within 20 s.\n%s", code, took, s.output())
	}
	r := run(t, "keys", "usage", "2", "--json", "--database", "sqlite:"+s.database)
	if want := fmt.Sprintf(`"admitted":%d`, writes+1); !strings.Contains(strings.ReplaceAll(r.stdout, " ", ""), want) {
		t.Errorf("usage is %s %s, want %s", r.stdout, r.stderr, want)
	}
	c = newClient(t, start(t, onDatabase(s.database)), key)
	if a := c.get(t, "/v1/pets"); a.body != "[]" && a.body != "[]\n" {
		t.Errorf("got %s stored, want no refused change", a.body)
	}
}

// TestStopWhileLocked: a lock that is never released doesn't prevent a server from
// stopping.
func TestStopWhileLocked(t *testing.T) {
	t.Parallel()
	s := start(t)
	key := loadKey(t, s.database)
	lockDatabase(t, s.database)
	wantStatus(t, newClient(t, s, key).get(t, "/v1/pets"), 200, "")
	s.signal(syscall.SIGTERM)
	asked := time.Now()
	code := s.wait()
	t.Logf("stopped after %v", time.Since(asked))
	if took := time.Since(asked); code != 0 || took > 30*time.Second { // 20 s, on a busy machine
		t.Errorf("exit code %d after %v, want 0 within 20 s.\n%s", code, took, s.output())
	}
	log := strings.TrimSpace(s.stderr.String())
	if !strings.Contains(log, "the latest counts are lost") || !strings.HasSuffix(log, "msg=stopped") {
		t.Errorf("the log doesn't say that counts are lost, or doesn't end with stopped.\n%s", s.output())
	}
}

// TestHangingDisk makes every fsync take longer than a request may take. The callers
// get correct responses in time.
func TestHangingDisk(t *testing.T) {
	t.Parallel()
	needsStrace(t)
	s := start(t)
	key := loadKey(t, s.database)
	c := newClient(t, s, key)
	wantStatus(t, c.do(t, "POST", "/v1/pets", newPetBody("before", 1, "sold")), 201, "")
	stop := s.inject("fsync,fdatasync", "delay_enter=120000000")
	// The second write is sent when the first one has its response, while that still
	// hangs: it has to queue.
	for i, want := range []string{"may or may not have been made", "nothing was changed"} {
		begun := time.Now()
		a := c.do(t, "POST", "/v1/pets", newPetBody(fmt.Sprint("during ", i), 1, "sold"))
		took := time.Since(begun)
		t.Logf("write %d: %d after %v: %s", i, a.status, took, a.body)
		if a.status != 503 || a.header.Get("Retry-After") == "" || took > 25*time.Second {
			t.Errorf("write %d: got %d %s after %v, want 503 after 5 s", i, a.status, a.body, took)
		}
		if i == 1 && !strings.Contains(a.body, want) || i == 0 && !strings.Contains(a.body, want) && !strings.Contains(a.body, "nothing was changed") {
			t.Errorf("write %d: got %s, want %q in it", i, a.body, want)
		}
	}
	stop()
	testenv.Eventually(t, "writes work again", func() bool {
		a, err := c.try("POST", "/v1/pets", newPetBody("after", 1, "sold"))
		return err == nil && a.status == 201
	})
	for _, p := range c.allPets(t, 0) {
		if p.Name == "during 1" {
			t.Errorf("%+v is stored, but its caller was told that nothing was changed", p)
		}
	}
	s.stop()
}

// TestNoSpaceAtStart: a server that can't start because the disk is full says so,
// whatever it is that doesn't fit.
func TestNoSpaceAtStart(t *testing.T) {
	t.Parallel()
	dir := tmpfs(t, 4<<20)
	database, ballast := filepath.Join(dir, "store.db"), filepath.Join(dir, "ballast")
	refused := func(what string, leave int64) {
		t.Helper()
		fill(t, ballast, leave)
		s := launch(t, onDatabase(database))
		if s.awaitServing() {
			s.stop()
		} else if code, log := s.wait(), s.stderr.String(); code != 1 || !strings.Contains(log, "disk") || !strings.Contains(log, "full: free some space") || strings.Contains(log, "goroutine ") {
			t.Errorf("%s, %d bytes left: exit code %d, want 1 and that the disk is full.\n%s", what, leave, code, s.output())
		}
		os.Remove(ballast)
	}
	for _, pages := range []int64{0, 1, 2, 4, 9, 10, 20, 30, 36, 40} {
		for _, suffix := range []string{"", "-wal", "-shm", "-journal", ".lock"} {
			os.Remove(database + suffix)
		}
		refused("a new database", pages*4096)
	}
	start(t, onDatabase(database)).stop()
	for _, pages := range []int64{0, 1, 4, 8} {
		refused("an existing database", pages*4096)
	}
	s := start(t, onDatabase(database))
	key := loadKey(t, database)
	a := newClient(t, s, key).do(t, "POST", "/v1/pets", newPetBody("Rex", 1, "sold"))
	wantStatus(t, a, 201, "")
	s.kill() // leaves a log to recover
	refused("a log to recover", 0)
	s = start(t, onDatabase(database))
	if got := newClient(t, s, key).get(t, a.header.Get("Location")); got.status != 200 || got.body != a.body {
		t.Errorf("got %d %s, want what was acknowledged: %s", got.status, got.body, a.body)
	}
	s.stop()
}
