//go:build linux

package e2e

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
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
	seed(t, database, 100_000)
	admin := adminKey(t, database)
	s := start(t, onDatabase(database), withEnv(env...))
	l := startLoad(t, s, admin, 2, "meanwhile", 50)
	failures := func() int64 { return remoteState(t, s, admin).Failures }
	uploaded := func() string { return remoteState(t, s, admin).At }
	// restore restores the newest backup to a new file. Failures leave nothing there.
	restore := func(when string, env []string, code int) {
		t.Helper()
		store := newDatabase(t)
		r := runWith(t, env, "db", "restore", bucketPlace, "--database", "sqlite:"+store)
		if r.code != code || exists(store) != (code == 0) {
			t.Errorf("%s: restore: got %+v, want exit code %d", when, r, code)
		}
	}
	testenv.Eventually(t, "the first backup", func() bool { return uploaded() != "" })
	fault := func(name string, begin, end func()) {
		failed := failures()
		before := l.acknowledged.Load()
		began := time.Now()
		begin()
		testenv.Eventually(t, "the service "+name, func() bool { return failures() > failed+1 || name == "stalls" && time.Since(began) > 5*time.Second })
		if l.acknowledged.Load() <= before {
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
	l.stop()
	if refused := l.refusals(); len(refused) > 0 || l.unanswered.Load() > 0 {
		t.Errorf("got the refusals %v and %d requests without a response, want none", refused, l.unanswered.Load())
	}
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

// TestBucketKills kills backups in the middle of the upload. The bucket never has a half one,
// and the next backup deletes the parts that were uploaded.
func TestBucketKills(t *testing.T) {
	testenv.OnlySoak(t, "it builds a real S3 service")
	service := startVersity(t, t.TempDir())
	database := largeStore(t, 10, 100)
	interrupted := 0
	for range 20 {
		backup := startIn(t, t.TempDir(), service.env(), binary, "db", "backup", bucketPlace, "--database", "sqlite:"+database)
		testenv.Eventually(t, "the upload begins", func() bool { return len(unfinishedFiles(t, service)) > 0 || backup.ended() })
		backup.kill()
		if len(unfinishedFiles(t, service)) > 0 {
			interrupted++
		}
	}
	if interrupted == 0 {
		t.Error("no upload was killed in the middle")
	}
	complete := backupsIn(t, service.env())
	if r := runWith(t, service.env(), "db", "backup", bucketPlace, "--database", "sqlite:"+database); r.code != 0 {
		t.Errorf("a backup after those that were killed: %+v", r)
	}
	if left := unfinishedFiles(t, service); len(left) > 0 {
		t.Errorf("left over in the bucket: %q", left)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(database), "*.upload*")); len(left) > 0 {
		t.Errorf("left over next to the store: %q", left)
	}
	all := backupsIn(t, service.env())
	if len(all) != len(complete)+1 {
		t.Errorf("got %d backups, want one more than %d", len(all), len(complete))
	}
	for _, b := range all {
		if b.Bytes != all[0].Bytes {
			t.Errorf("got %+v, want as many bytes as %+v", b, all[0])
		}
	}

	downloads := 0
	for range 20 {
		store := newDatabase(t)
		restore := startIn(t, t.TempDir(), service.env(), binary, "db", "restore", bucketPlace, "--database", "sqlite:"+store)
		testenv.Eventually(t, "the download begins", func() bool {
			left, _ := filepath.Glob(store + ".*.partial")
			return len(left) > 0 || restore.ended()
		})
		restore.kill()
		if exists(store) {
			continue // it was complete
		}
		downloads++
		if r := runWith(t, service.env(), "db", "restore", bucketPlace, "--database", "sqlite:"+store); r.code != 0 {
			t.Errorf("a restore after one that was killed: %+v", r)
		}
		if left, _ := filepath.Glob(store + "*.partial"); len(left) > 0 {
			t.Errorf("left over next to the restored store: %q", left)
		}
	}
	if downloads == 0 {
		t.Error("no download was killed in the middle")
	}
	t.Logf("%d uploads and %d downloads were killed in the middle", interrupted, downloads)
}
