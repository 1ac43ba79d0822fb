//go:build linux

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// lockDatabase keeps every other process from writing, until release is called.
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

// TestForeignLock: while another process keeps the server from writing, every change is
// refused in the same way, and nothing that was refused is stored. The counts of the
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
		wg.Go(func() { // one after the other: some have to queue
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
		t.Errorf("stored are %s, want nothing of what was refused", a.body)
	}
}

// TestStopWhileLocked: a lock that is never released doesn't keep a server from stopping.
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
	if !strings.Contains(s.stderr.String(), "the latest counts are lost") {
		t.Errorf("the log doesn't say that counts are lost.\n%s", s.output())
	}
}

// TestHangingDisk makes every fsync take longer than a request may. The callers get
// their responses in time, and those are true.
func TestHangingDisk(t *testing.T) {
	t.Parallel()
	needsStrace(t)
	s := start(t)
	key := loadKey(t, s.database)
	c := newClient(t, s, key)
	wantStatus(t, c.do(t, "POST", "/v1/pets", newPetBody("before", 1, "sold")), 201, "")
	pid := s.cmd.Process.Pid
	strace := exec.Command("strace", "-f", "-p", fmt.Sprint(pid), "-o", os.DevNull, "-e", "trace=fsync,fdatasync", "-e", "inject=fsync,fdatasync:delay_enter=9000000")
	strace.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := strace.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		strace.Process.Kill()
		strace.Wait()
	}()
	eventually(t, 20*time.Second, "every thread is traced", func() bool { return s.ended() || traced(pid) })
	var wg sync.WaitGroup
	for i, want := range []string{"may or may not have been made", "nothing was changed"} {
		wg.Go(func() {
			time.Sleep(time.Duration(i) * time.Second) // the second one queues
			begun := time.Now()
			a := newClient(t, s, key).do(t, "POST", "/v1/pets", newPetBody(fmt.Sprint("during ", i), 1, "sold"))
			took := time.Since(begun)
			t.Logf("write %d: %d after %v: %s", i, a.status, took, a.body)
			if a.status != 503 || a.header.Get("Retry-After") == "" || took > 8*time.Second {
				t.Errorf("write %d: got %d %s after %v, want 503 after 5 s", i, a.status, a.body, took)
			}
			if i == 1 && !strings.Contains(a.body, want) || i == 0 && !strings.Contains(a.body, want) && !strings.Contains(a.body, "nothing was changed") {
				t.Errorf("write %d: got %s, want that %s", i, a.body, want)
			}
		})
	}
	wg.Wait()
	strace.Process.Kill()
	strace.Wait()
	eventually(t, time.Minute, "writes work again", func() bool {
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

// TestNoSpaceAtStart: a server that can't start because of a full disk says so, whatever
// it is that doesn't fit.
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
}
