//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"animalstore/internal/testenv"
)

// badProxy is a TCP proxy that misbehaves.
type badProxy struct {
	url  string
	mode atomic.Int32
}

const (
	passes  = iota
	cuts    // in the middle of a request
	stalls  // while it has this mode
	refuses // connections, and ends those that are kept alive
)

func startProxy(t *testing.T, target string) *badProxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	p := &badProxy{url: "http://" + l.Addr().String()}
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", strings.TrimPrefix(target, "http://"))
			if err != nil || p.mode.Load() == refuses {
				in.Close()
				continue
			}
			go p.forward(out, in)
			go p.forward(in, out)
		}
	}()
	return p
}

func (p *badProxy) forward(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 32<<10)
	for sent := 0; ; {
		n, err := from.Read(buf)
		for p.mode.Load() == stalls {
			time.Sleep(10 * time.Millisecond)
		}
		sent += n
		if mode := p.mode.Load(); mode == refuses || mode == cuts && sent > 100<<10 {
			return
		}
		if _, e := to.Write(buf[:n]); err != nil || e != nil {
			return
		}
	}
}

// TestBucketFaults: while its bucket fails in every way, a server keeps serving, and what is
// in the bucket can always be restored. Afterwards backups continue by themselves.
func TestBucketFaults(t *testing.T) {
	testenv.OnlySoak(t, "it builds a real S3 service and waits for retries")
	disk := tmpfs(t, 300<<20)
	service := startVersity(t, disk)
	proxy := startProxy(t, service.url)
	env := append(bucketService{url: proxy.url}.env(), "ANIMALSTORE_BACKUP_TO="+bucketPlace, "ANIMALSTORE_BACKUP_EVERY=2s", "ANIMALSTORE_BACKUP_KEEP=2")
	database := newDatabase(t)
	if r := run(t, "seed", "--pets", "100000", "--database", "sqlite:"+database); r.code != 0 {
		t.Fatalf("seed: %+v", r)
	}
	key := loadKey(t, database)
	s := start(t, onDatabase(database), withEnv(env...))
	stop := make(chan struct{})
	l := &ledgerOfNumbers{sent: make([]int, 2), acknowledged: make([]int, 2)}
	writers := l.write(t, s, key, stop)

	admin := newKey(t, database, "--name", "admin", "--permissions", "admin", "--plan", "enterprise", "--per-minute", "1000000000", "--per-day", "1000000000")
	failures := func() int64 { return remoteState(t, s, admin).Failures }
	uploaded := func() string { return remoteState(t, s, admin).At }
	// restore restores the newest backup to a new file. Failures leave nothing there.
	restore := func(when string, env []string, code int) {
		t.Helper()
		store := newDatabase(t)
		r := runWith(t, env, "db", "restore", bucketPlace, "--database", "sqlite:"+store)
		if _, err := os.Stat(store); r.code != code || (err == nil) != (code == 0) {
			t.Errorf("%s: restore: got %+v and %v, want exit code %d", when, r, err, code)
		}
	}
	testenv.Eventually(t, "the first backup", func() bool { return uploaded() != "" })
	fault := func(name string, begin, end func()) {
		failed := failures()
		_, before := l.counts()
		began := time.Now()
		begin()
		testenv.Eventually(t, "the service "+name, func() bool { return failures() > failed+1 || name == "stalls" && time.Since(began) > 5*time.Second })
		if _, after := l.counts(); after[0] <= before[0] {
			t.Errorf("%s: no pets were added meanwhile", name)
		}
		restore("while the service "+name, service.env(), 0)
		switch name {
		case "cuts": // a restore goes on where it was
			restore("from a service that "+name, bucketService{url: proxy.url}.env(), 0)
		case "refuses connections":
			restore("from a service that "+name, bucketService{url: proxy.url}.env(), 1)
		}
		end()
		last := uploaded()
		testenv.Eventually(t, "backups continue after the service "+name, func() bool { return uploaded() > last && !remoteState(t, s, admin).Failing })
		if all := backupsIn(t, service.env()); len(all) > 3 {
			t.Errorf("%s: got %d backups, want 2, or 3 while one is replaced", name, len(all))
		}
		restore("after the service "+name, service.env(), 0)
	}
	for mode, name := range map[int32]string{cuts: "cuts", refuses: "refuses connections", stalls: "stalls"} {
		fault(name, func() { proxy.mode.Store(mode) }, func() { proxy.mode.Store(passes) })
	}
	filler := filepath.Join(disk, "filler")
	fault("is full", func() { fill(t, filler, 1<<20) }, func() { os.Remove(filler) })
	close(stop)
	writers.Wait()
	s.stop()
	if left := unfinishedFiles(t, service); len(left) > 0 {
		t.Errorf("left over in the bucket: %q", left)
	}

	// Wrong credentials are a failure like any other.
	s = start(t, onDatabase(database), withEnv(append(env, "AWS_SECRET_ACCESS_KEY=wrong")...))
	testenv.Eventually(t, "a failure is counted", func() bool { state := remoteState(t, s, admin); return state.Failing && state.Failures > 0 })
	if !strings.Contains(s.stderr.String(), "SignatureDoesNotMatch") {
		t.Errorf("the log doesn't say why:\n%s", s.stderr)
	}
	s.stop()
}

// remoteState reads the state of the backups on another machine.
func remoteState(t *testing.T, s *server, key string) (state struct {
	At       string
	Failures int64
	Failing  bool
}) {
	t.Helper()
	a := newClient(t, s, key).get(t, "/v1/status")
	wantStatus(t, a, 200, "")
	body := struct{ RemoteBackup any }{&state}
	if err := json.Unmarshal([]byte(a.body), &body); err != nil {
		t.Fatal(err)
	}
	return state
}

// unfinishedFiles returns the files of uploads that were not completed.
func unfinishedFiles(t *testing.T, service bucketService) (left []string) {
	t.Helper()
	err := filepath.WalkDir(service.dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.Contains(path, "multipart") {
			left = append(left, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return left
}

// largeStore creates a store of this many pets and, in addition, about this many megabytes.
// These are in a table that no check reads row by row, and once more in its index.
func largeStore(t *testing.T, pets, megabytes int) (database string) {
	t.Helper()
	database = newDatabase(t)
	if r := run(t, "seed", "--pets", strconv.Itoa(pets), "--database", "sqlite:"+database); r.code != 0 {
		t.Fatalf("seed: %+v", r)
	}
	newKey(t, database, "--name", "owner")
	query(t, database, fmt.Sprintf("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) INSERT INTO console_forms (hash, used_at) SELECT randomblob(500000), 4000000000000 FROM n", megabytes))
	return database
}

// TestBucketMemory: the memory of a server doesn't grow with the size of its backup.
func TestBucketMemory(t *testing.T) {
	testenv.OnlySoak(t, "it needs 3 GB of disk space")
	service := startVersity(t, t.TempDir())
	peak := func(pets, megabytes int) int64 {
		database := largeStore(t, pets, megabytes)
		defer os.RemoveAll(filepath.Dir(database))
		s := start(t, onDatabase(database), withEnv(append(service.env(), "ANIMALSTORE_BACKUP_TO="+bucketPlace)...))
		began := time.Now()
		for !strings.Contains(s.stderr.String(), "uploaded a backup") {
			if time.Sleep(100 * time.Millisecond); s.ended() || time.Since(began) > 10*time.Minute {
				t.Fatalf("no backup\n%s", s.output())
			}
		}
		megabytesUsed := s.peakMemory() >> 20
		t.Logf("a backup of %d MB: %d MiB of memory at most, %.1f s", backupsIn(t, service.env())[0].Bytes/1e6, megabytesUsed, time.Since(began).Seconds())
		s.stop()
		return megabytesUsed
	}
	small, large := peak(100_000, 30), peak(1_500_000, 850)
	if large-small > 96 { // what caches, one sort and the garbage collector may take
		t.Errorf("memory grew by %d MiB with the size, want at most 96", large-small)
	}
}
