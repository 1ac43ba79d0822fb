//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"animalstore/internal/db/postgres/pgtest"
	"animalstore/internal/db/transfer/s3/s3test"
	"animalstore/internal/testenv"
)

// bucketPlace is where the tests keep backups.
const bucketPlace = "s3://" + s3test.Bucket + "/shop"

// bucketService is an S3 service with an empty bucket. A soak uses a real one, which takes
// more than a minute to build. Otherwise it is a stand-in in memory.
type bucketService struct {
	url string
	dir string // of the real service's objects
}

func (s bucketService) env() []string {
	return []string{"AWS_ENDPOINT_URL=" + s.url, "AWS_ACCESS_KEY_ID=" + s3test.AccessKey, "AWS_SECRET_ACCESS_KEY=" + s3test.SecretKey, "AWS_REGION=us-east-1"}
}

func startBucket(t *testing.T) bucketService {
	t.Helper()
	if testenv.Count(0, 1) == 0 {
		return bucketService{url: s3test.Start(t).URL}
	}
	return startVersity(t, t.TempDir())
}

// versity is versitygw, built once.
var versity = sync.OnceValues(func() (string, error) {
	path := filepath.Join(filepath.Dir(binary), "versitygw")
	build := exec.Command("go", "-C", "../tools", "build", "-o", path, "github.com/versity/versitygw/cmd/versitygw")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("build versitygw: %w\n%s", err, out)
	}
	return path, err
})

// startVersity starts a real S3 service that keeps its objects as files in dir.
func startVersity(t *testing.T, dir string) bucketService {
	t.Helper()
	program, err := versity()
	if err != nil {
		t.Fatal(err)
	}
	address := pgtest.FreeAddress(t)
	for _, name := range []string{"objects/" + s3test.Bucket, "metadata"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	startProgram(t, program, "--access", s3test.AccessKey, "--secret", s3test.SecretKey, "--port", address, "--quiet",
		"posix", "--sidecar", filepath.Join(dir, "metadata"), filepath.Join(dir, "objects"))
	testenv.Eventually(t, "versitygw serves", func() bool {
		resp, err := http.Get("http://" + address)
		if err == nil {
			resp.Body.Close()
		}
		return err == nil
	})
	return bucketService{"http://" + address, filepath.Join(dir, "objects", s3test.Bucket)}
}

// runWith runs a command of the binary with more environment variables.
func runWith(t *testing.T, env []string, args ...string) result {
	t.Helper()
	s := startIn(t, t.TempDir(), env, append([]string{binary}, args...)...)
	code := s.wait()
	return result{s.stdout.String(), s.stderr.String(), code}
}

type storedBackup struct {
	Address, Store string
	Bytes          int64
}

// backupsIn lists the backups in the place of the tests, newest first.
func backupsIn(t *testing.T, env []string) (all []storedBackup) {
	t.Helper()
	r := runWith(t, env, "db", "backups", "list", bucketPlace, "--json")
	if err := json.Unmarshal([]byte(r.stdout), &all); r.code != 0 || err != nil {
		t.Fatalf("db backups list: %+v, %v", r, err)
	}
	return all
}

// snapshotOf returns everything of a store that callers can see, with a key that the store
// has.
func snapshotOf(t *testing.T, s *server, key string) (all []string) {
	t.Helper()
	c := newClient(t, s, key)
	for _, path := range []string{"/v1/pets?limit=100", "/v1/store/orders", "/v1/categories", "/v1/keys/1", "/v1/events?limit=100"} {
		a := c.get(t, path)
		wantStatus(t, a, 200, "")
		all = append(all, path+" "+a.body)
	}
	return all
}

// TestDiskGone: when the machine is gone, the three commands of the guide lead from the
// bucket to a serving store with everything that the backup had.
func TestDiskGone(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	service := startBucket(t)
	database := newDatabase(t)
	env := append(service.env(), "ANIMALSTORE_BACKUP_TO="+bucketPlace, "ANIMALSTORE_BACKUP_EVERY=1s")
	s := start(t, onDatabase(database), withEnv(env...))
	key := newKey(t, database, "--name", "admin", "--plan", "business", "--permissions", "read,write,admin")
	c := newClient(t, s, key)
	for i := range 30 {
		wantStatus(t, c.do(t, "POST", "/v1/pets", newPetBody(fmt.Sprint("pet ", i), int64(i%3), "available")), 201, "")
	}
	wantStatus(t, c.do(t, "POST", "/v1/store/orders", `{"petId": 1}`), 201, "")
	before := snapshotOf(t, s, key)
	// A backup in progress may lack something, but not the one after it.
	var seen []string
	testenv.Eventually(t, "two more backups are made", func() bool {
		if all := backupsIn(t, env); len(all) > 0 && !slices.Contains(seen, all[0].Address) {
			seen = append(seen, all[0].Address)
		}
		return len(seen) >= 3
	})
	if state := remoteState(t, s, key); state.At == "" || state.Failing || state.Failures != 0 {
		t.Errorf("got the state %+v, want a backup and no failure", state)
	}
	s.kill()
	if err := os.RemoveAll(filepath.Dir(database)); err != nil {
		t.Fatal(err)
	}

	commands := guideCommands(t, "TestDiskGone")
	if len(commands) != 3 {
		t.Fatalf("got the commands %q in the guide, want three", commands)
	}
	machine := t.TempDir()
	if err := os.Symlink(binary, filepath.Join(machine, "animalstore")); err != nil {
		t.Fatal(err)
	}
	env = append(service.env(), "ANIMALSTORE_LISTEN=127.0.0.1:0", "ANIMALSTORE_OPS_LISTEN=", "PATH="+machine+":"+os.Getenv("PATH"))
	for _, command := range commands[:2] {
		if p := startIn(t, machine, env, "sh", "-c", command); p.wait() != 0 {
			t.Fatalf("%s: %s", command, p.output())
		}
	}
	restored := startIn(t, machine, env, "sh", "-c", "exec "+commands[2])
	if !restored.awaitServing() {
		t.Fatal(restored.output())
	}
	for i, after := range snapshotOf(t, restored, key) {
		if after != before[i] {
			t.Errorf("got %s\nwant %s", after, before[i])
		}
	}
	// The restored store begins its own backups, and leaves the old store's.
	testenv.Eventually(t, "the restored store is backed up", func() bool {
		all := backupsIn(t, service.env())
		return slices.ContainsFunc(all, func(b storedBackup) bool { return b.Store != all[0].Store })
	})
	if r := runWith(t, service.env(), "db", "restore", bucketPlace); r.code != 2 || !strings.Contains(r.stderr, "more than one store") {
		t.Errorf("restore with backups of two stores: got %+v, want exit code 2", r)
	}
}

// guideCommands returns the commands of the block in the guide that names a test.
func guideCommands(t *testing.T, test string) (commands []string) {
	t.Helper()
	blocks, _ := readBlocks(string(mustRead(t, "../docs/operations.md")))
	for _, b := range blocks {
		if strings.Contains(b.how, test+" ") {
			commands = append(commands, strings.Split(strings.TrimSpace(b.text), "\n")...)
		}
	}
	return commands
}

// TestHalfBackup: what isn't a complete backup isn't restored from a bucket.
func TestHalfBackup(t *testing.T) {
	t.Parallel()
	service := s3test.Start(t)
	env := service.Environment()
	database := newDatabase(t)
	newKey(t, database, "--name", "owner")
	if r := runWith(t, env, "db", "backup", bucketPlace, "--database", "sqlite:"+database); r.code != 0 {
		t.Fatalf("db backup: %+v", r)
	}
	key := service.Keys()[0]
	whole := service.Get(key)
	for name, content := range map[string][]byte{
		"half":                 whole[:len(whole)/2],
		"without its checksum": whole[:len(whole)/4096*4096],
		"with another byte":    append(append([]byte{}, whole[:5000]...), append([]byte{whole[5000] ^ 1}, whole[5001:]...)...),
		"empty":                {},
	} {
		service.Set(key, content)
		store := newDatabase(t)
		if r := runWith(t, env, "db", "restore", bucketPlace, "--database", "sqlite:"+store); r.code != 1 {
			t.Errorf("%s: got %+v, want exit code 1", name, r)
		}
		if left, _ := filepath.Glob(store + "*"); len(left) > 1 { // only the lock
			t.Errorf("%s: left over: %q", name, left)
		}
	}
	service.Set(key, whole)
	if r := runWith(t, env, "db", "restore", bucketPlace, "--database", "sqlite:"+newDatabase(t)); r.code != 0 {
		t.Errorf("whole: got %+v, want it restored", r)
	}
}

// TestBucketUnreachable: a server whose bucket can't be reached starts, serves and stops as
// usual, and reports the failure everywhere.
func TestBucketUnreachable(t *testing.T) {
	t.Parallel()
	env := append(bucketService{url: "http://" + pgtest.FreeAddress(t)}.env(), "ANIMALSTORE_BACKUP_TO="+bucketPlace)
	s := start(t, withOps(), withEnv(env...))
	key := newKey(t, s.database, "--name", "admin", "--plan", "business", "--permissions", "read,write,admin")
	testenv.Eventually(t, "the failure is counted", func() bool { return strings.Contains(s.metrics(), "\nanimalstore_remote_backup_failing 1\n") })
	if state := remoteState(t, s, key); !state.Failing || state.Failures != 1 || state.At != "" {
		t.Errorf("got the state %+v, want one failure and no backup", state)
	}
	if !strings.Contains(s.stderr.String(), "backup to another machine failed") {
		t.Errorf("the log has no failure:\n%s", s.stderr)
	}
	wantStatus(t, newClient(t, s, key).do(t, "POST", "/v1/pets", newPetBody("Rex", 1, "available")), 201, "")
	s.stop()
}

// badProxy is a TCP proxy that misbehaves.
type badProxy struct {
	url  string
	mode atomic.Int32
}

const (
	passes  = iota
	cuts    // in the middle of a request
	stalls  // while it has this mode
	refuses // new connections
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
		if sent += n; p.mode.Load() == cuts && sent > 100<<10 {
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
	recovers := func(fault string) {
		before := uploaded()
		testenv.Eventually(t, "backups continue after the service "+fault, func() bool { return uploaded() > before && !remoteState(t, s, admin).Failing })
		all := backupsIn(t, service.env())
		if len(all) > 3 {
			t.Errorf("%s: got %d backups, want 2, or 3 while one is replaced", fault, len(all))
		}
		store := newDatabase(t)
		if r := runWith(t, service.env(), "db", "restore", all[0].Address, "--database", "sqlite:"+store); r.code != 0 {
			t.Errorf("%s: restore: %+v", fault, r)
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
		end()
		recovers(name)
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

// largeStore creates a store of about this many megabytes. The bytes are in a table that no
// check reads row by row, and once more in its index.
func largeStore(t *testing.T, megabytes int) (database string) {
	t.Helper()
	database = newDatabase(t)
	newKey(t, database, "--name", "owner")
	query(t, database, fmt.Sprintf("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) INSERT INTO console_forms (hash, used_at) SELECT randomblob(500000), 4000000000000 FROM n", megabytes))
	return database
}

// TestBucketKills kills backups in the middle of the upload. The bucket never has a half one,
// and the next backup deletes the parts that were uploaded.
func TestBucketKills(t *testing.T) {
	testenv.OnlySoak(t, "it builds a real S3 service")
	service := startVersity(t, t.TempDir())
	database := largeStore(t, 100)
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
	t.Logf("%d uploads were killed in the middle", interrupted)
}

// TestBucketMemory: the memory of a server doesn't grow with the size of its backup.
func TestBucketMemory(t *testing.T) {
	testenv.OnlySoak(t, "it needs 3 GB of disk space")
	service := startVersity(t, t.TempDir())
	peak := map[int]int64{}
	for _, size := range []int{50, 1000} {
		database := largeStore(t, size)
		s := start(t, onDatabase(database), withEnv(append(service.env(), "ANIMALSTORE_BACKUP_TO="+bucketPlace+fmt.Sprint(size))...))
		began := time.Now()
		for !strings.Contains(s.stderr.String(), "uploaded a backup") {
			if time.Sleep(100 * time.Millisecond); s.ended() || time.Since(began) > 10*time.Minute {
				t.Fatalf("no backup of %d MB\n%s", size, s.output())
			}
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		_, text, _ := strings.Cut(string(status), "VmHWM:")
		var kilobytes int64
		if _, err := fmt.Sscan(text, &kilobytes); err != nil {
			t.Fatal(err)
		}
		peak[size] = kilobytes >> 10
		t.Logf("a backup of %d MB: %d MiB of memory at most, %.1f s", size, peak[size], time.Since(began).Seconds())
		s.stop()
		os.RemoveAll(filepath.Dir(database))
	}
	if grown := peak[1000] - peak[50]; grown > 64 {
		t.Errorf("memory grew by %d MiB with the size, want at most 64", grown)
	}
}
