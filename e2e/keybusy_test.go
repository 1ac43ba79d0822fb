package e2e

import (
	"encoding/json"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"animalstore/internal/db/postgres/pgtest"
)

// TestChangesOfBusyKeys: what the command line does to a key that has been in use for a
// while takes effect within a second, on every server, although they haven't looked it up
// since. All keys stay in use throughout.
func TestChangesOfBusyKeys(t *testing.T) {
	onlyForRelease(t, "a load that takes long")
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		s := start(t)
		changeBusyKeys(t, "sqlite:"+s.database, s)
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		database := pgtest.Shared(t).NewDatabase(t, "")
		changeBusyKeys(t, database, startAll(t, 2, database)...)
	})
}

func changeBusyKeys(t *testing.T, database string, servers ...*server) {
	changes := []struct {
		name, verb string
		flags      []string
		after      func(response) bool
	}{
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
	time.Sleep(2 * time.Second) // not to wait for something, but to let what was looked up get old
	for i, c := range changes {
		args := slices.Concat([]string{"keys", c.verb, ids[i], "--database", database}, c.flags)
		if r := run(t, args...); r.code != 0 {
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
