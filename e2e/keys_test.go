package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// refusedWithinASecond sends requests until the key is refused. The promise is kept if
// no request sent more than a second after since was served.
func refusedWithinASecond(t *testing.T, c *client, since time.Time) {
	t.Helper()
	for ; ; time.Sleep(5 * time.Millisecond) {
		sent := time.Now()
		a := c.get(t, "/v1/pets")
		if a.status == 401 {
			return
		}
		wantStatus(t, a, 200, "")
		if late := sent.Sub(since); late > time.Second {
			t.Fatalf("the key is still served %v after it ended", late)
		}
	}
}

func TestExpiry(t *testing.T) {
	t.Parallel()
	s := start(t)
	begun := time.Now()
	c := newClient(t, s, newKey(t, s.database, "--name", "brief", "--expires", "2s", "--plan", "enterprise", "--per-minute", "1000000", "--per-day", "1000000"))
	made := time.Now()
	if a := c.get(t, "/v1/pets"); a.status != 200 && time.Since(begun) < 2*time.Second {
		t.Fatalf("a key that has not expired yet is answered with %d %s", a.status, a.body)
	}
	refusedWithinASecond(t, c, made.Add(2*time.Second))
	if took := time.Since(begun); took < 2*time.Second {
		t.Errorf("a key for 2s was refused after %v", took)
	}
}

func TestKeysOfTheOtherDeployment(t *testing.T) {
	t.Parallel()
	for env, other := range map[string]string{"production": "staging", "staging": "production"} {
		s := start(t, withArgs("--environment", env))
		pattern, prefix := liveKey, "ast_live_"
		if env == "staging" {
			pattern, prefix = testKey, "ast_test_"
		}
		owner := s.printed(pattern)
		wantStatus(t, newClient(t, s, owner).get(t, "/v1/pets"), 200, "")
		foreign := newKey(t, s.database, "--name", "foreign", "--environment", other)
		if strings.HasPrefix(foreign, prefix) {
			t.Errorf("a key for %s starts with %s", other, prefix)
		}
		wantStatus(t, newClient(t, s, foreign).get(t, "/v1/pets"), 401, "invalid_api_key")
		s.stop() // after which the log is complete
		log := s.stderr.String()
		if !strings.Contains(log, "another deployment") || strings.Contains(log, foreign) {
			t.Errorf("want a warning in the log, without the key:\n%s", log)
		}
	}
}

// TestChangesOfBusyKeys: a change to a key that has been in use for a while takes
// effect within a second on every server, although the servers haven't looked the key
// up since. All keys stay in use throughout.
func TestChangesOfBusyKeys(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, database string, instances int) {
		changeBusyKeys(t, databaseFlag(database), startAll(t, instances, database))
	})
}

func changeBusyKeys(t *testing.T, database string, servers []*server) {
	admin := newClient(t, servers[0], adminKey(t, servers[0].database))
	changes := []struct {
		name, verb string
		flags      []string
		after      func(response) bool
	}{
		{"a revocation over the API", "", nil, func(a response) bool { return a.status == 401 }},
		{"a revocation", "revoke", nil, func(a response) bool { return a.status == 401 }},
		{"a rotation without grace", "rotate", []string{"--grace", "0s"}, func(a response) bool { return a.status == 401 }},
		{"other limits", "set-plan", []string{"--plan", "enterprise", "--per-minute", "77000000", "--per-day", "900000000"},
			func(a response) bool { return a.header.Get("X-RateLimit-Limit") == "77000000" }},
	}
	var ids []string
	clients := make([][]*client, len(changes)) // of each key, one for each server
	for i, c := range changes {
		out := run(t, "keys", "create", "--json", "--database", database, "--name", c.name, "--plan", "enterprise", "--per-minute", "100000000", "--per-day", "1000000000")
		id, secret := createdKey(t, out)
		ids = append(ids, id)
		for _, s := range servers {
			clients[i] = append(clients[i], newClient(t, s, secret))
		}
	}
	stop := useAll(t, clients)
	defer stop()
	time.Sleep(2 * time.Second) // lets the cached lookups get old
	for i, c := range changes {
		if c.verb == "" {
			wantStatus(t, admin.do(t, "DELETE", "/v1/keys/"+ids[i], ""), 204, "")
		} else if r := run(t, slices.Concat([]string{"keys", c.verb, ids[i], "--database", database}, c.flags)...); r.code != 0 {
			t.Fatalf("%s: exit code %d\n%s", c.name, r.code, r.stderr)
		}
		seenWithinASecond(t, c.name, func() bool {
			for _, client := range clients[i] {
				if !c.after(client.get(t, "/v1/pets")) {
					return false
				}
			}
			return true
		})
	}
}

// useAll sends requests with all clients until stop is called.
func useAll(t *testing.T, clients [][]*client) (stop func()) {
	done := make(chan struct{})
	var group sync.WaitGroup
	for _, ofKey := range clients {
		for _, c := range ofKey {
			group.Go(func() {
				for {
					select {
					case <-done:
						return
					case <-time.After(50 * time.Millisecond):
					}
					if _, err := c.try("GET", "/v1/pets", ""); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	return sync.OnceFunc(func() { close(done); group.Wait() })
}

// createdKey returns the id and the secret that keys create --json printed.
func createdKey(t *testing.T, r result) (id, secret string) {
	t.Helper()
	var key struct {
		ID     int64
		Secret string
	}
	if err := json.Unmarshal([]byte(r.stdout), &key); err != nil || key.ID == 0 || key.Secret == "" {
		t.Fatalf("keys create --json: %v\n%s%s", err, r.stdout, r.stderr)
	}
	return strconv.FormatInt(key.ID, 10), key.Secret
}

// seenWithinASecond calls seen until it returns true. The promise is kept if no request
// sent more than a second after this call still saw the old state.
func seenWithinASecond(t *testing.T, what string, seen func() bool) {
	t.Helper()
	for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		sent := time.Since(begun)
		if seen() {
			return
		}
		if sent > time.Second {
			t.Fatalf("not %v after the command: %s", sent, what)
		}
	}
}

// update changes keys in the file of a running server, for changes without a command.
func update(t testing.TB, database, change string) {
	t.Helper()
	conn, err := sqlite.OpenConn(database, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetBusyTimeout(10 * time.Second)
	if err := sqlitex.ExecuteTransient(conn, "UPDATE keys SET "+change, nil); err != nil {
		t.Fatal(err)
	}
}

// TestChangesByAnotherProcess: a change by another process takes effect within a second
// on a server that has just used the key. TestChangesOfBusyKeys tests other changes.
func TestChangesByAnotherProcess(t *testing.T) {
	t.Parallel()
	awayFromMidnight(t)
	s := start(t)
	limit := func(want string) func(response) bool {
		return func(a response) bool { return a.header.Get("X-RateLimit-Limit") == want }
	}
	status := func(want int) func(response) bool {
		return func(a response) bool { return a.status == want }
	}
	const read, write, admin = 1, 2, 4
	changes := []struct {
		name   string
		change func(id string)
		path   string
		before int
		after  func(response) bool
	}{
		{"a larger plan", func(id string) { command(t, s.database, "set-plan", id, "--plan", "business") }, "/v1/pets", 200, limit("1000")},
		{"an expiry", func(id string) {
			update(t, s.database, fmt.Sprintf("expires_at = %d WHERE id = %s", time.Now().UnixMilli(), id))
		}, "/v1/pets", 200, status(401)},
		{"a permission taken away", func(id string) { update(t, s.database, fmt.Sprintf("permissions = %d WHERE id = %s", write, id)) }, "/v1/pets", 200, status(403)},
		{"a permission given", func(id string) {
			update(t, s.database, fmt.Sprintf("permissions = %d WHERE id = %s", read|admin, id))
		}, "/v1/keys", 403, status(200)},
	}
	for i, c := range changes {
		name := fmt.Sprint("key ", i)
		client := newClient(t, s, newKey(t, s.database, "--name", name, "--plan", "enterprise", "--per-minute", "1000000000", "--per-day", "1000000000"))
		id := keyID(t, s.database, name)
		client.get(t, c.path)
		for range 3 { // at different ages of what the server remembers
			wantStatus(t, client.get(t, c.path), c.before, "")
		}
		c.change(id)
		seenWithinASecond(t, c.name, func() bool { return c.after(client.get(t, c.path)) })
		for range 20 {
			if a := client.get(t, c.path); !c.after(a) {
				t.Fatalf("%s: got %d %s afterwards, want it to stay", c.name, a.status, a.body)
			}
		}
	}
	t.Run("a rotation with grace", func(t *testing.T) {
		old := newClient(t, s, newKey(t, s.database, "--name", "rotated", "--plan", "pro"))
		wantStatus(t, old.get(t, "/v1/pets"), 200, "")
		fresh := newClient(t, s, strings.TrimSpace(command(t, s.database, "rotate", keyID(t, s.database, "rotated"), "--grace", "1h").stdout))
		wantStatus(t, fresh.get(t, "/v1/pets"), 200, "")
		wantStatus(t, old.get(t, "/v1/pets"), 200, "")
		if got := fresh.limits(t).Day.Remaining; got != 10_000-4 {
			t.Errorf("%d of the day remain, want 10000 minus the requests of both secrets", got)
		}
	})
}

// TestUsageAddsUp: the store reports the requests that many clients counted, across
// restarts.
func TestUsageAddsUp(t *testing.T) {
	t.Parallel()
	s := start(t)
	key := newKey(t, s.database, "--name", "counted", "--plan", "free")
	id := keyID(t, s.database, "counted")
	var mu sync.Mutex
	counted := map[bool]int64{} // by whether they were refused
	for range 3 {
		var group sync.WaitGroup
		for i := range 4 {
			c := newClient(t, s, key)
			group.Go(func() {
				for n := range 15 {
					a, err := c.try("GET", []string{"/v1/pets", "/v1/pets/99", "/v1/nothing", "/v1/keys"}[(i+n)%4], "")
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					counted[a.status == 429]++
					mu.Unlock()
				}
			})
		}
		group.Wait()
		untilItEnds(t, s, newClient(t, s, key), "/v1/pets", func(a response) { counted[a.status == 429]++ })
		s = start(t, onDatabase(s.database))
	}
	var hours []struct{ Admitted, Refused int64 }
	if err := json.Unmarshal([]byte(command(t, s.database, "usage", id, "--json").stdout), &hours); err != nil {
		t.Fatal(err)
	}
	stored := map[bool]int64{}
	for _, h := range hours {
		stored[false] += h.Admitted
		stored[true] += h.Refused
	}
	if stored[false] != counted[false] || stored[true] != counted[true] || counted[true] == 0 {
		t.Errorf("got %d admitted and %d refused stored, want %d and %d", stored[false], stored[true], counted[false], counted[true])
	}
}

// TestCanary uses secrets in every way keys can be used, and then looks for them
// everywhere they must not be.
func TestCanary(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"text", "json"} {
		database := newDatabase(t)
		owner := "canary-owner-" + strings.Repeat("0wn3r", 5)
		s := start(t, onDatabase(database), withArgs("--access-log", "--log-format", format), withOps(), withEnv("ANIMALSTORE_OWNER_KEY="+owner))
		imported := "canary-import-" + strings.Repeat("1mp0rt", 5)
		minted := newKey(t, database, "--name", "minted", "--plan", "free")
		revoked := newKey(t, database, "--name", "revoked")
		var said bytes.Buffer // by commands
		for _, r := range []result{
			runWithInput(t, imported+"\n", "keys", "import", "--name", "imported", "--plan", "pro", "--database", "sqlite:"+database),
			runWithInput(t, imported+"\n", "keys", "import", "--name", "again", "--database", "sqlite:"+database),
			runWithInput(t, "x"+minted, "keys", "import", "--name", "x", "--database", "sqlite:"+database),
			runWithInput(t, minted[:40], "keys", "import", "--name", "cut off", "--database", "sqlite:"+database),
			command(t, database, "revoke", keyID(t, database, "revoked")),
			command(t, database, "list"), command(t, database, "list", "--json"),
			command(t, database, "show", keyID(t, database, "minted")), command(t, database, "usage", keyID(t, database, "imported")),
		} {
			said.WriteString(r.stdout + r.stderr)
		}
		rotated := strings.TrimSpace(command(t, database, "rotate", keyID(t, database, "imported"), "--grace", "1h").stdout)
		canaries := []string{owner, imported, minted, revoked, rotated}
		for _, secret := range canaries {
			session(t, s, secret, &said)
		}
		made := newClient(t, s, owner).do(t, "POST", "/v1/keys", `{"name":"made"}`)
		wantStatus(t, made, 201, "")
		var shown struct{ Secret string }
		if err := json.Unmarshal([]byte(made.body), &shown); err != nil || shown.Secret == "" {
			t.Fatalf("no secret in %s (%v)", made.body, err)
		}
		canaries = append(canaries, shown.Secret)
		session(t, s, shown.Secret, &said)

		arguments, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", s.cmd.Process.Pid))
		if err != nil {
			t.Logf("no process arguments to look at: %v", err)
		}
		metrics := s.metrics()
		look := func(when string) {
			t.Helper()
			places := map[string][]byte{"metrics": []byte(metrics), "log": []byte(s.stderr.String()), "standard output": []byte(s.stdout.String()), "responses and commands": said.Bytes(), "process arguments": arguments}
			files, err := filepath.Glob(database + "*")
			if err != nil || len(files) < 2 {
				t.Fatalf("%s: the files are %q (%v), want the database and more", when, files, err)
			}
			for _, file := range files {
				content, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				places[file] = content
			}
			if n := bytes.Count(places["log"], []byte("/v1/pets")); n < 10*len(canaries) || said.Len() == 0 || len(places[database]) == 0 || len(metrics) == 0 {
				t.Fatalf("%s: %d requests are in the log: there is nothing to look at", when, n)
			}
			if bytes.Contains(places["log"], []byte("Rex")) {
				t.Errorf("%s: the log contains part of a request's body", when)
			}
			for place, content := range places {
				for i, secret := range canaries {
					if form := find(content, secret); form != "" {
						t.Errorf("%s: canary %d is in the %s (%s)", when, i, place, form)
					}
				}
			}
		}
		look("while it runs")
		s.stop()
		look("after its end")
	}
}

// find returns the encoding in which a text contains a secret, or "".
func find(content []byte, secret string) string {
	forms := map[string]string{"raw": secret, "without its ends": secret[9 : len(secret)-6], "hexadecimal": hex.EncodeToString([]byte(secret))}
	for shift := range 3 { // base64 looks different by where in a text it starts
		part := secret[shift:]
		part = part[:len(part)/3*3]
		forms[fmt.Sprint("base64 shifted by ", shift)] = base64.StdEncoding.EncodeToString([]byte(part))
		forms[fmt.Sprint("base64 for URLs shifted by ", shift)] = base64.URLEncoding.EncodeToString([]byte(part))
	}
	lower := bytes.ToLower(content)
	for form, text := range forms {
		if bytes.Contains(content, []byte(text)) || form == "hexadecimal" && bytes.Contains(lower, []byte(text)) {
			return form
		}
	}
	return ""
}

// TestFind: find finds secrets in all encodings.
func TestFind(t *testing.T) {
	t.Parallel()
	const secret = "ast_live_0000000000000000000000000000000Example"
	for name, content := range map[string]string{
		"raw":               "a" + secret + "b",
		"hexadecimal":       "x" + hex.EncodeToString([]byte(secret)),
		"large hexadecimal": strings.ToUpper(hex.EncodeToString([]byte("a" + secret))),
		"base64":            base64.StdEncoding.EncodeToString([]byte(secret)),
		"base64 shifted":    base64.RawURLEncoding.EncodeToString([]byte("a" + secret + "bc")),
		"base64 shifted on": base64.StdEncoding.EncodeToString([]byte("ab" + secret)),
	} {
		if find([]byte(content), secret) == "" {
			t.Errorf("%s: not found in %s", name, content)
		}
	}
	if form := find([]byte("nothing of the kind"), secret); form != "" {
		t.Errorf("found as %s where there is nothing", form)
	}
}

// session sends every kind of request with a secret, right and wrong, and records the
// responses.
func session(t testing.TB, s *server, secret string, said io.Writer) {
	t.Helper()
	c := newClient(t, s, secret)
	keep := func(a response) { fmt.Fprintln(said, a.status, a.header, a.body) }
	for _, r := range [][3]string{
		{"GET", "/v1/pets", ""}, {"HEAD", "/v1/pets", ""}, {"OPTIONS", "/v1/pets", ""}, {"GET", "/v1/pets/99", ""}, {"GET", "/v1/nothing", ""}, {"PUT", "/v1/pets", ""},
		{"POST", "/v1/pets", `{"name":"Rex","categoryId":1}`}, {"POST", "/v1/pets", `{"name":"Rex","categoryId":"` + secret + `"}`}, {"POST", "/v1/pets", secret},
		{"POST", "/v1/pets", `{"` + secret + `":1}`}, {"POST", "/v1/pets", `{"name":"Rex","categoryId":1,"status":"` + secret + `"}`},
		{"GET", "/v1/pets?limit=" + secret, ""}, {"GET", "/v1/pets?cursor=" + secret, ""}, {"GET", "/v1/pets?status=" + secret, ""}, {"GET", "/v1/pets?api_key=" + secret, ""},
		{"GET", "/v1/limits", ""}, {"GET", "/v1/usage", ""}, {"GET", "/v1/keys", ""}, {"POST", "/v1/keys", `{"name":"` + secret[:4] + `","plan":"` + secret + `"}`}, {"GET", "/v1/keys/99", ""}, {"GET", "/livez", ""},
	} {
		keep(c.do(t, r[0], r[1], r[2]))
	}
	for _, headers := range [][]string{
		{"Authorization", "Basic " + secret}, {"Authorization", secret}, {"Authorization", "Bearer " + secret + "x"}, {"Authorization", "Bearer " + secret + " x"},
		{"Cookie", "key=" + secret}, {"X-Request-Id", secret + "!"}, {"Idempotency-Key", "a b"}, {"If-Match", `"` + secret + `"`}, {"If-None-Match", secret}, {"Content-Type", secret},
	} {
		keep(c.do(t, "GET", "/v1/pets", "", headers...))
	}
	conn := dial(t, s)
	conn.send(t, strings.TrimSuffix(message("GET", "/v1/pets", secret, ""), "\r\n")+"Authorization: Bearer "+secret+"\r\n\r\n")
	keep(conn.mustReceive(t))
	if resp, err := http.Get(s.url + "/openapi.json"); err == nil {
		resp.Body.Close()
	}
}
