//go:build linux

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"animalstore/internal/testenv"
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
	// The server keeps writing, so there may be less space than was free.
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

// TestDiskFull_Slow fills the disk under a server and frees it again.
func TestDiskFull_Slow(t *testing.T) {
	t.Parallel()
	dir := tmpfs(t, 48<<20)
	database := filepath.Join(dir, "store.db")
	key := adminKey(t, database)
	s := start(t, onDatabase(database))
	defer func() {
		if t.Failed() {
			t.Log(s.output())
		}
	}()
	c := newClient(t, s, key)
	acknowledged := newLedger()
	for round := range testenv.Count(1, 40) {
		ballast := filepath.Join(dir, "ballast")
		l := startLoad(t, s, key, 4, fmt.Sprint("round ", round), 4000)
		testenv.Eventually(t, "writes work", func() bool { return l.acknowledged.Load() >= 50 })
		// The remaining space varies, so that the disk fills up at a different point in
		// each round.
		fill(t, ballast, int64(round)*13*4096)
		testenv.Eventually(t, "writes are refused because the disk is full", func() bool { return l.refusals()["storage_full"] >= 50 })
		for _, path := range []string{"/v1/pets?limit=100", "/v1/pets/1", "/v1/store/orders", "/readyz", "/livez"} {
			wantStatus(t, c.get(t, path), 200, "")
		}
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
		for code, n := range l.refusals() {
			if code != "storage_full" {
				t.Errorf("round %d: %d writes were refused with %q, want storage_full", round, n, code)
			}
		}
		if n := l.unanswered.Load(); n > 0 {
			t.Fatalf("round %d: %d requests got no response", round, n)
		}
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
}

// TestStorageLost_Slow removes the files of a running server, which notices without a request
// and stops.
func TestStorageLost_Slow(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(database string) error{
		"removed":     os.Remove,
		"log removed": func(database string) error { return os.Remove(database + "-wal") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			if err := lose(s.database); err != nil {
				t.Fatal(err)
			}
			if code, log := s.wait(), s.stderr.String(); code != 1 || !strings.Contains(log, "storage failed") || strings.Contains(log, "goroutine ") {
				t.Errorf("exit code %d, want 1, a log line that storage failed, and no stack.\n%s", code, s.output())
			}
		})
	}
}

// TestNoSpaceAtStart_Slow: a server that can't start because the disk is full says so, and
// loses nothing.
func TestNoSpaceAtStart_Slow(t *testing.T) {
	t.Parallel()
	dir := tmpfs(t, 4<<20)
	database, ballast := filepath.Join(dir, "store.db"), filepath.Join(dir, "ballast")
	refused := func(what string) {
		t.Helper()
		fill(t, ballast, 0)
		s := launch(t, onDatabase(database))
		if code, log := s.wait(), s.stderr.String(); code != 1 || !strings.Contains(log, "full") || strings.Contains(log, "goroutine ") {
			t.Errorf("%s: exit code %d, want 1 and that the disk is full.\n%s", what, code, s.output())
		}
		os.Remove(ballast)
	}
	refused("a new database")
	s := start(t, onDatabase(database))
	key := adminKey(t, database)
	a := newClient(t, s, key).do(t, "POST", "/v1/pets", newPetBody("Rex", 1, "sold"))
	wantStatus(t, a, 201, "")
	s.kill()
	refused("a log to recover")
	s = start(t, onDatabase(database))
	if got := newClient(t, s, key).get(t, a.header.Get("Location")); got.status != 200 || got.body != a.body {
		t.Errorf("got %d %s, want what was acknowledged: %s", got.status, got.body, a.body)
	}
	s.stop()
}
