//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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

// startVersity starts a real S3 service that keeps its objects as files in dir.
func startVersity(t *testing.T, dir string) bucketService {
	t.Helper()
	program := buildTool(t, "github.com/versity/versitygw/cmd/versitygw")
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
	key := adminKey(t, database)
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

// TestWrongBucket: a bucket that can't be used is reported before the store is read.
func TestWrongBucket(t *testing.T) {
	t.Parallel()
	r := runWith(t, startBucket(t).env(), "db", "backup", "s3://no-such-bucket/shop", "--database", "sqlite:absent.db")
	if r.code != 1 || !strings.Contains(r.stderr, "no-such-bucket") {
		t.Errorf("got %+v, want exit code 1 and a message about the bucket", r)
	}
}

// TestBucketUnreachable: a server whose bucket can't be reached starts, serves and stops as
// usual, and reports the failure everywhere.
func TestBucketUnreachable(t *testing.T) {
	t.Parallel()
	env := append(bucketService{url: "http://" + pgtest.FreeAddress(t)}.env(), "ANIMALSTORE_BACKUP_TO="+bucketPlace)
	s := start(t, withOps(), withEnv(env...))
	key := adminKey(t, s.database)
	testenv.Eventually(t, "the failure is counted", func() bool { return strings.Contains(s.metrics(), "\nanimalstore_remote_backup_failing 1\n") })
	if state := remoteState(t, s, key); !state.Failing || state.Failures != 1 || state.At != "" {
		t.Errorf("got the state %+v, want one failure and no backup", state)
	}
	if !strings.Contains(s.stderr.String(), "backup to another machine failed") {
		t.Errorf("the log has no failure:\n%s", s.stderr)
	}
	if page := systemPage(t, s, key); !strings.Contains(page, "on another machine") || !strings.Contains(page, "The last attempt failed") || strings.Contains(page, "Scheduled backups are off") {
		t.Errorf("the console doesn't show the failure:\n%s", page)
	}
	wantStatus(t, newClient(t, s, key).do(t, "POST", "/v1/pets", newPetBody("Rex", 1, "available")), 201, "")
	s.stop()
}

// systemPage returns the console's page about the server, to someone with a key.
func systemPage(t *testing.T, s *server, key string) string {
	t.Helper()
	page := newClient(t, s, "").do(t, "GET", "/console/system", "", "Cookie", sessionOf(t, s, key).String())
	wantStatus(t, page, 200, "")
	return page.body
}

// sessionOf signs in to the console.
func sessionOf(t *testing.T, s *server, key string) *http.Cookie {
	t.Helper()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.PostForm(s.url+"/console/sign-in", url.Values{"key": {key}})
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	for _, cookie := range res.Cookies() {
		if cookie.Name == "animalstore_session" {
			return &http.Cookie{Name: cookie.Name, Value: cookie.Value}
		}
	}
	t.Fatalf("sign in: got %s without a session", res.Status)
	return nil
}
