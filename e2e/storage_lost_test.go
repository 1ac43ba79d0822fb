//go:build linux

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// wantStorageFailure waits until a server has stopped because of its storage.
func (s *server) wantStorageFailure(atMost time.Duration, said ...string) {
	s.t.Helper()
	eventually(s.t, atMost, "the server stops", s.ended)
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

// TestStorageLost removes, replaces and damages the files of a running server. It has to
// notice by itself: no request is sent.
func TestStorageLost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lose func(database string) error
		said string
	}{
		"removed":      {os.Remove, "store.db was removed"},
		"renamed":      {func(db string) error { return os.Rename(db, db+".old") }, "store.db was removed"},
		"renamed over": {func(db string) error { return renameOver(db) }, "store.db was replaced"},
		"truncated":    {func(db string) error { return os.Truncate(db, 3*4096) }, "store.db was truncated"},
		"emptied":      {func(db string) error { return os.Truncate(db, 0) }, "store.db was truncated"},
		"overwritten":  {func(db string) error { return overwrite(db, strings.Repeat("x", 1<<20)) }, "store.db was truncated or overwritten"},
		"log removed":  {func(db string) error { return os.Remove(db + "-wal") }, "store.db-wal was removed"},
		"index gone":   {func(db string) error { return os.Remove(db + "-shm") }, "store.db-shm was removed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			if err := c.lose(s.database); err != nil {
				t.Fatal(err)
			}
			lost := time.Now()
			s.wantStorageFailure(20*time.Second, c.said) // 5 s on a machine with time to spare
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

func overwrite(path, content string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(content)
	return err
}

// TestLegitimateShrinking: another process may make the file smaller with VACUUM.
func TestLegitimateShrinking(t *testing.T) {
	t.Parallel()
	needs(t, "sqlite3")
	s := start(t)
	if out, err := exec.Command("sqlite3", s.database, "CREATE TABLE t (x); INSERT INTO t VALUES (zeroblob(4000000))", "PRAGMA wal_checkpoint",
		"DROP TABLE t", "VACUUM", "PRAGMA wal_checkpoint").CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	time.Sleep(3 * time.Second) // to see that nothing happens
	wantStatus(t, newClient(t, s, "").get(t, "/readyz"), 200, "")
	s.stop()
}

// TestReadError fails every read of the system under a running server.
func TestReadError(t *testing.T) {
	t.Parallel()
	needsStrace(t)
	s := start(t)
	key := loadKey(t, s.database)
	c := newClient(t, s, key)
	wantStatus(t, c.do(t, "POST", "/v1/pets", newPetBody("Rex", 1, "sold")), 201, "")
	pid := s.cmd.Process.Pid
	strace := exec.Command("strace", "-f", "-p", fmt.Sprint(pid), "-o", os.DevNull, "-e", "trace=pread64", "-e", "inject=pread64:error=EIO")
	strace.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := strace.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		strace.Process.Kill()
		strace.Wait()
	}()
	eventually(t, 20*time.Second, "every thread is traced", func() bool { return s.ended() || traced(pid) })
	for n := 0; !s.ended() && n < 100; n++ {
		for _, path := range []string{"/readyz", "/v1/pets", "/v1/pets/1"} {
			if a, err := c.try("GET", path, ""); err == nil && (a.status == 500 || a.status == 200 && path == "/v1/pets/1" && !strings.Contains(a.body, "Rex")) {
				t.Errorf("GET %s: got %d %s, want what is stored, 503 or no response", path, a.status, a.body)
			}
		}
	}
	s.wantStorageFailure(20 * time.Second)
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

// TestOneServer: a file has one server, whatever it is called and whatever happens to
// the lock file.
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
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Link(s.database, link); err != nil {
		t.Fatal(err)
	}
	refused("a hard link", link)
	for _, command := range [][]string{
		{"keys", "create", "--name", "x"}, {"keys", "list"}, {"seed", "--animals", "10"}, {"db", "check"},
	} {
		if r := run(t, append(command, "--database", "sqlite:"+link)...); r.code == 0 {
			t.Errorf("%v through a hard link worked beside a server: it would use another log", command)
		}
	}
	if err := os.Remove(s.database + ".lock"); err != nil {
		t.Fatal(err)
	}
	refused("without the lock file", s.database)
	if r := run(t, "seed", "--animals", "10", "--database", "sqlite:"+s.database); r.code == 0 {
		t.Error("seed worked beside a server whose lock file was deleted")
	}
	newKey(t, s.database, "--name", "beside") // by its own name commands still work
	s.stop()
	if got := integrity(t, s.database); got != "ok" {
		t.Errorf("the file is damaged: %s", got)
	}
	start(t, onDatabase(s.database)).stop() // the other name does no harm alone
}
