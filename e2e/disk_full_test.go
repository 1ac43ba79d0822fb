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
	"time"
)

// tmpfs is a file system of a few megabytes.
func tmpfs(t *testing.T, size int) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		skip(t, "a full disk needs a small file system, which only root can mount: %v", err)
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
	// The server writes meanwhile, so that there may be less than was free.
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
	rounds := 4
	if soak {
		rounds = 40
	}
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
		eventually(t, time.Minute, "writes work", func() bool { return l.acknowledged.Load() >= 50 })
		// The space left differs, so that the disk fills up at a different point each round.
		fill(t, ballast, int64(round)*13*4096)
		eventually(t, time.Minute, "writes are refused because the disk is full", func() bool { return l.refusals()["storage_full"] >= 50 })
		// This doesn't change while the disk is full: at most an odd write
		// still finds space, and reads of every kind work.
		full := l.refusals()["storage_full"]
		readWhileFull(t, s, c, l)
		eventually(t, time.Minute, "writes are still refused", func() bool { return l.refusals()["storage_full"] >= full+50 })
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
		freed := l.acknowledged.Load()
		eventually(t, time.Minute, "writes work again without a restart", func() bool { return l.acknowledged.Load() >= freed+50 })
		for _, p := range l.stop() {
			if err := acknowledged.add(p); err != nil {
				t.Error(err)
			}
		}
		if slowest, allowed := time.Duration(l.slowest.Load()), time.Second+busy(); slowest > allowed {
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

// TestStartOnAFullDisk starts a server that has a log to recover and no space for it.
func TestStartOnAFullDisk(t *testing.T) {
	t.Parallel()
	dir := tmpfs(t, 8<<20)
	database, ballast := filepath.Join(dir, "store.db"), filepath.Join(dir, "ballast")
	key := loadKey(t, database)
	s := start(t, onDatabase(database))
	a := newClient(t, s, key).do(t, "POST", "/v1/pets", newPetBody("Rex", 1, "sold"))
	wantStatus(t, a, 201, "")
	s.kill()
	fill(t, ballast, 0)
	s = launch(t, onDatabase(database))
	if code := s.wait(); code != 1 || !strings.Contains(s.stderr.String(), "its disk is full: free some space") {
		t.Errorf("exit code %d, want 1 and advice.\n%s", code, s.output())
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	s = start(t, onDatabase(database))
	if got := newClient(t, s, key).get(t, a.header.Get("Location")); got.status != 200 || got.body != a.body {
		t.Errorf("got %d %s, want what was acknowledged: %s", got.status, got.body, a.body)
	}
	s.stop()
}

// readWhileFull reads in every way there is.
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
	allowed := time.Second + busy()
	for path, took := range took {
		if took > allowed {
			t.Errorf("GET %s took %v on a full disk, want at most %v", path, took, allowed)
		}
	}
	if all := c.allPets(t, last.ID-200); all[last.ID] != last {
		t.Errorf("the list has %+v, want %+v", all[last.ID], last)
	}
}
