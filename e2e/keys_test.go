package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"animalstore/internal/testenv"
)

// keyID is the id of the key with this name.
func keyID(t testing.TB, database, name string) string {
	t.Helper()
	var all []struct {
		ID   int64
		Name string
	}
	list := command(t, database, "list", "--json")
	if err := json.Unmarshal([]byte(list.stdout), &all); err != nil {
		t.Fatalf("keys list: %v\n%s%s", err, list.stdout, list.stderr)
	}
	for _, k := range all {
		if k.Name == name {
			return strconv.FormatInt(k.ID, 10)
		}
	}
	t.Fatalf("no key is called %s:\n%s", name, list.stdout)
	return ""
}

// command runs a keys command that must succeed.
func command(t testing.TB, database string, args ...string) result {
	t.Helper()
	r := run(t, slices.Concat([]string{"keys"}, args, []string{"--database", databaseFlag(database)})...)
	if r.code != 0 {
		t.Fatalf("keys %s: exit code %d\n%s", strings.Join(args, " "), r.code, r.stderr)
	}
	return r
}

// openStream follows the events, and returns whether the server has ended the stream.
func openStream(t *testing.T, c *client) (ended *atomic.Bool) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", c.url+"/v1/events?after=latest", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Authorization": {"Bearer " + c.key}, "Accept": {"text/event-stream"}}
	res, err := c.http.Transport.RoundTrip(req)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("got %v, %v, want a stream", res, err)
	}
	ended = new(atomic.Bool)
	go func() {
		defer res.Body.Close()
		io.Copy(io.Discard, res.Body)
		ended.Store(true)
	}()
	return ended
}

// TestKeyChanges_Slow: every instance notices a change of a key that it has just used, even
// if a command made it in another process. Streams that the key may no longer have end.
func TestKeyChanges_Slow(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, database string, count int) {
		instances := startInstances(t, count, database)
		admin := newClient(t, instances[0].server, adminKey(t, database))
		refused := func(a response) bool { return a.status == 401 }
		for _, test := range []struct {
			name   string
			change func(id string)
			seen   func(response) bool
			ends   bool // streams too
		}{
			{"revoked over the API", func(id string) {
				wantStatus(t, admin.do(t, "DELETE", "/v1/keys/"+id, ""), 204, "")
			}, refused, true},
			{"revoked", func(id string) { command(t, database, "revoke", id) }, refused, true},
			{"limits", func(id string) {
				command(t, database, "set", id, "--plan", "enterprise", "--per-minute", "77", "--per-day", "900")
			}, func(a response) bool { return a.header.Get("X-RateLimit-Limit") == "77" }, false},
		} {
			secret := newKey(t, database, "--name", test.name, "--plan", "enterprise", "--per-minute", "1000000", "--per-day", "1000000")
			var clients []*client // one for each instance
			var ended []*atomic.Bool
			for _, in := range instances {
				c := newClient(t, in.server, secret)
				wantStatus(t, c.get(t, "/v1/pets"), 200, "")
				clients, ended = append(clients, c), append(ended, openStream(t, c))
			}
			test.change(keyID(t, database, test.name))
			for i, c := range clients {
				testenv.Eventually(t, fmt.Sprintf("%s, by instance %d", test.name, i), func() bool { return test.seen(c.get(t, "/v1/pets")) })
				if test.ends {
					testenv.Eventually(t, fmt.Sprintf("%s, by a stream of instance %d", test.name, i), ended[i].Load)
				}
			}
		}
	})
}
