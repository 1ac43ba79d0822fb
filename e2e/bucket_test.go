//go:build linux

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"animalstore/internal/db/postgres/pgtest"
	"animalstore/internal/db/transfer/s3/s3test"
	"animalstore/internal/testenv"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
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

// client returns a client that reads and writes the bucket's objects directly.
func (s bucketService) client(t *testing.T) *bucketClient {
	t.Helper()
	c, err := minio.New(strings.TrimPrefix(s.url, "http://"), &minio.Options{Creds: credentials.NewStaticV4(s3test.AccessKey, s3test.SecretKey, ""), Region: "us-east-1"})
	if err != nil {
		t.Fatal(err)
	}
	return &bucketClient{t, c}
}

type bucketClient struct {
	t      *testing.T
	client *minio.Client
}

func (c *bucketClient) keys() (keys []string) {
	c.t.Helper()
	for o := range c.client.ListObjects(c.t.Context(), s3test.Bucket, minio.ListObjectsOptions{Recursive: true}) {
		if o.Err != nil {
			c.t.Fatal(o.Err)
		}
		keys = append(keys, o.Key)
	}
	return keys
}

func (c *bucketClient) get(key string) []byte {
	c.t.Helper()
	o, err := c.client.GetObject(c.t.Context(), s3test.Bucket, key, minio.GetObjectOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	defer o.Close()
	content, err := io.ReadAll(o)
	if err != nil {
		c.t.Fatal(err)
	}
	return content
}

func (c *bucketClient) set(key string, content []byte) {
	c.t.Helper()
	if _, err := c.client.PutObject(c.t.Context(), s3test.Bucket, key, bytes.NewReader(content), int64(len(content)), minio.PutObjectOptions{}); err != nil {
		c.t.Fatal(err)
	}
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
	build.Env = append(os.Environ(), testenv.BuildFlags...)
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

// TestDiskGone_Slow: when the machine is gone, the three commands of the guide lead from the
// bucket to a serving store with everything that the backup had.
func TestDiskGone_Slow(t *testing.T) {
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

	commands := guideCommands(t, "TestDiskGone_Slow")
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
	service := startBucket(t)
	env, objects := service.env(), service.client(t)
	database := newDatabase(t)
	newKey(t, database, "--name", "owner")
	if r := runWith(t, env, "db", "backup", bucketPlace, "--database", "sqlite:"+database); r.code != 0 {
		t.Fatalf("db backup: %+v", r)
	}
	key := objects.keys()[0]
	whole := objects.get(key)
	for name, content := range map[string][]byte{
		"half":                 whole[:len(whole)/2],
		"without its checksum": whole[:len(whole)/4096*4096],
		"with another byte":    append(append([]byte{}, whole[:5000]...), append([]byte{whole[5000] ^ 1}, whole[5001:]...)...),
		"empty":                {},
	} {
		objects.set(key, content)
		store := newDatabase(t)
		if r := runWith(t, env, "db", "restore", bucketPlace, "--database", "sqlite:"+store); r.code != 1 {
			t.Errorf("%s: got %+v, want exit code 1", name, r)
		}
		if left, _ := filepath.Glob(store + "*"); len(left) > 0 {
			t.Errorf("%s: left over: %q", name, left)
		}
	}
	objects.set(key, whole)
	proxy, store := startProxy(t, service.url), newDatabase(t)
	proxy.mode.Store(refuses)
	if r := runWith(t, bucketService{url: proxy.url}.env(), "db", "restore", bucketPlace, "--database", "sqlite:"+store); r.code != 1 {
		t.Errorf("from a service that refuses: got %+v, want exit code 1", r)
	}
	if left, _ := filepath.Glob(store + "*"); len(left) > 0 {
		t.Errorf("from a service that refuses: left over: %q", left)
	}
	proxy.mode.Store(cuts) // several times, because the backup is larger than what it lets through
	if r := runWith(t, bucketService{url: proxy.url}.env(), "db", "restore", bucketPlace, "--database", "sqlite:"+store); r.code != 0 {
		t.Errorf("from a service that cuts: got %+v, want it restored", r)
	}
	if r := runWith(t, env, "db", "restore", bucketPlace, "--database", "sqlite:"+newDatabase(t)); r.code != 0 || !strings.Contains(r.stderr, key+", made 20") {
		t.Errorf("whole: got %+v, want it restored, and which one it was", r)
	}
}

// TestWrongBucket: a bucket that can't be used is reported before the store is read.
func TestWrongBucket(t *testing.T) {
	t.Parallel()
	r := runWith(t, startBucket(t).env(), "db", "backup", "s3://no-such-bucket/shop", "--database", "sqlite:absent.db")
	if r.code != 1 || !strings.Contains(r.stderr, "no-such-bucket") {
		t.Errorf("got %+v, want exit code 1 and a message about the bucket", r)
	}
	empty := newDatabase(t)
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := runWith(t, startBucket(t).env(), "db", "backup", bucketPlace, "--database", "sqlite:"+empty); r.code != 1 || len(mustRead(t, empty)) > 0 {
		t.Errorf("an empty file: got %+v and %d bytes, want exit code 1 and no change", r, len(mustRead(t, empty)))
	}
}

// TestBucketPrune_Slow: a server deletes its own old backups, and nothing else in the bucket.
func TestBucketPrune_Slow(t *testing.T) {
	t.Parallel()
	service := startBucket(t)
	objects := service.client(t)
	other := newDatabase(t)
	newKey(t, other, "--name", "owner")
	if r := runWith(t, service.env(), "db", "backup", bucketPlace, "--database", "sqlite:"+other); r.code != 0 {
		t.Fatalf("db backup: %+v", r)
	}
	objects.set("shop/film.mp4", []byte("a film"))
	others := objects.keys()
	s := start(t, withEnv(append(service.env(), "ANIMALSTORE_BACKUP_TO="+bucketPlace, "ANIMALSTORE_BACKUP_EVERY=1s", "ANIMALSTORE_BACKUP_KEEP=1")...))
	var made []string
	testenv.Eventually(t, "old backups are deleted", func() bool {
		var stored []string
		for _, key := range objects.keys() {
			if slices.Contains(others, key) {
				continue
			}
			if stored = append(stored, key); !slices.Contains(made, key) {
				made = append(made, key)
			}
		}
		if len(made) > 0 && len(stored) == 0 || len(stored) > 2 {
			t.Fatalf("got the backups %q, want one, or two while the older is deleted", stored)
		}
		return len(made) >= 5
	})
	s.stop()
	if got := objects.keys(); !slices.Contains(got, made[len(made)-1]) || !slices.Contains(got, others[0]) || !slices.Contains(got, others[1]) {
		t.Errorf("got %q in the bucket, want %q and the newest backup", got, others)
	}
}

// TestCopiedStore: a copy of a store's file that is served with the same settings leaves the
// backups of the original. It says so once.
func TestCopiedStore(t *testing.T) {
	t.Parallel()
	service := startBucket(t)
	objects := service.client(t)
	original, copied := newDatabase(t), newDatabase(t)
	newKey(t, original, "--name", "owner")
	backUp := func() {
		t.Helper()
		if r := runWith(t, service.env(), "db", "backup", bucketPlace, "--database", "sqlite:"+original); r.code != 0 || strings.Contains(r.stderr, "copy of") {
			t.Fatalf("db backup: %+v", r)
		}
	}
	backUp()
	if err := os.WriteFile(copied, mustRead(t, original), 0o600); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "a new name", func() bool { return !strings.HasSuffix(objects.keys()[0], time.Now().UTC().Format("150405Z.db")) })
	backUp()
	originals := objects.keys()
	s := start(t, onDatabase(copied), withEnv(append(service.env(), "ANIMALSTORE_BACKUP_TO="+bucketPlace, "ANIMALSTORE_BACKUP_EVERY=1s", "ANIMALSTORE_BACKUP_KEEP=1")...))
	testenv.Eventually(t, "the copy replaces a backup of its own", func() bool { return strings.Count(s.stderr.String(), "uploaded a backup") > 2 })
	s.stop()
	got := objects.keys()
	for _, key := range originals {
		if !slices.Contains(got, key) {
			t.Errorf("the copy deleted %s: got %q", key, got)
		}
	}
	if n := strings.Count(s.stderr.String(), "new id"); n != 1 || len(originals) != 2 {
		t.Errorf("of %q, the copy said %d times that it is one, want once:\n%s", originals, n, s.stderr)
	}
	backUp() // the original keeps its id, because its backups are still the newest of it
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
	if page := systemPage(t, s, key); !strings.Contains(page, "on another machine") || !strings.Contains(page, "The last attempt failed") || strings.Contains(page, "makes none by itself") {
		t.Errorf("the console doesn't show the failure:\n%s", page)
	}
	wantStatus(t, newClient(t, s, key).do(t, "POST", "/v1/pets", newPetBody("Rex", 1, "available")), 201, "")
	s.stop()
}

// systemPage returns the console's page about the server, to someone with a key.
func systemPage(t *testing.T, s *server, key string) string {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	resp, err := browser.PostForm(s.url+"/console/sign-in", url.Values{"key": {key}, "next": {"/console/system"}})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("sign in: got %d, %v", resp.StatusCode, err)
	}
	return string(page)
}
