package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"animalstore/internal/db/postgres/pgtest"
)

// withPassword puts a password into a URL, which the tests' servers do not ask for.
func withPassword(url, password string) string {
	return strings.Replace(url, "animalstore@", "animalstore:"+password+"@", 1)
}

// startAll starts n instances on one database at the same time.
func startAll(t testing.TB, n int, database string, opts ...option) []*server {
	t.Helper()
	all := make([]*server, n)
	for i := range all {
		all[i] = launch(t, append([]option{onDatabase(database)}, opts...)...)
	}
	for _, s := range all {
		if !s.awaitServing() {
			t.Fatalf("an instance does not serve.\n%s", s.output())
		}
	}
	return all
}

// TestPostgresFirstRun: of instances that start at once on an empty database one
// shows the owner key, which then works on all. Nothing reveals the password.
func TestPostgresFirstRun(t *testing.T) {
	t.Parallel()
	const password = "hunter2"
	database := withPassword(pgtest.Shared(t).NewDatabase(t, ""), password)
	instances := startAll(t, 3, database)
	var key string
	for _, s := range instances {
		out := s.stdout.String()
		if out == "" {
			continue
		}
		if key != "" {
			t.Errorf("a second instance shows a key:\n%s", out)
		}
		for line := range strings.Lines(out) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "ast_live_") {
				key = line
			}
		}
		if !strings.Contains(out, "Database  postgres://127.0.0.1:") || !strings.Contains(out, "/"+pgtest.Name(database)+"\n") {
			t.Errorf("the greeting does not name the database:\n%s", out)
		}
	}
	if key == "" {
		t.Fatal("no instance shows a key")
	}
	for i, s := range instances {
		c := newClient(t, s, key)
		wantStatus(t, c.do(t, "POST", "/v1/pets", newPetBody(fmt.Sprint("of instance ", i), 1, "available")), 201, "")
		wantStatus(t, c.get(t, "/readyz"), 200, "")
	}
	for i, s := range instances {
		// What one wrote, all see at once.
		if got := len(newClient(t, s, key).allPets(t, 0)); got != 3 {
			t.Errorf("instance %d shows %d pets, want 3", i, got)
		}
		s.stop()
		if strings.Contains(s.output(), password) {
			t.Errorf("instance %d reveals the password:\n%s", i, s.output())
		}
	}
	for _, args := range [][]string{{"keys", "list"}, {"keys", "show", "1"}, {"keys", "usage", "1"}, {"keys", "revoke", "1"}} {
		r := run(t, append(args, "--database", database)...)
		if r.code != 0 || strings.Contains(r.stdout+r.stderr, password) {
			t.Errorf("%q: exit code %d, want 0 and no password\n%s%s", args, r.code, r.stdout, r.stderr)
		}
	}
}

// TestPostgresRevocation: what happens to a key by one way counts within a second
// on every instance, each of which has just used it.
func TestPostgresRevocation(t *testing.T) {
	t.Parallel()
	database := pgtest.Shared(t).NewDatabase(t, "")
	admin := newKey(t, database, "--name", "admin", "--plan", "business", "--permissions", "read,write,admin")
	instances := startAll(t, 3, database)
	for round, revoke := range []func(id string){
		func(id string) {
			if r := run(t, "keys", "revoke", id, "--database", database); r.code != 0 {
				t.Fatalf("keys revoke: exit code %d\n%s", r.code, r.stderr)
			}
		},
		func(id string) {
			wantStatus(t, newClient(t, instances[0], admin).do(t, "DELETE", "/v1/keys/"+id, ""), 204, "")
		},
	} {
		a := newClient(t, instances[1], admin).do(t, "POST", "/v1/keys", `{"name":"short-lived","plan":"business"}`)
		wantStatus(t, a, 201, "")
		var made struct {
			ID     int64  `json:"id"`
			Secret string `json:"secret"`
		}
		if err := json.Unmarshal([]byte(a.body), &made); err != nil || made.Secret == "" {
			t.Fatalf("no key in %s: %v", a.body, err)
		}
		var clients []*client
		for _, s := range instances {
			clients = append(clients, newClient(t, s, made.Secret))
		}
		for _, c := range clients {
			wantStatus(t, c.get(t, "/v1/pets"), 200, "")
		}
		revoke(fmt.Sprint(made.ID))
		seenWithinASecond(t, fmt.Sprintf("way %d: the key is refused by every instance", round), func() bool {
			refused := 0
			for _, c := range clients {
				if c.get(t, "/v1/pets").status == 401 {
					refused++
				}
			}
			return refused == len(clients)
		})
	}
}

// TestPostgresLostResponse: a write whose commit was sent and not answered says so,
// and can be sent again with its Idempotency-Key.
func TestPostgresLostResponse(t *testing.T) {
	t.Parallel()
	database := pgtest.Shared(t).NewDatabase(t, "")
	proxy := pgtest.NewProxy(t, database)
	s := start(t, onDatabase(proxy.URL(database)))
	c := newClient(t, s, loadKey(t, database))
	for i, order := range []bool{false, true} {
		name := fmt.Sprint("lost ", i)
		path, body := "/v1/pets", newPetBody(name, 1, "available")
		texts := []string{name, "commit\x00"}
		if order {
			a := c.do(t, "POST", "/v1/pets", body)
			wantStatus(t, a, 201, "")
			p, err := decodePet(a.body)
			if err != nil {
				t.Fatal(err)
			}
			path, body = "/v1/store/orders", fmt.Sprintf(`{"petId":%d}`, p.ID)
			texts[0] = "token-1"
		}
		token := fmt.Sprint("token-", i)
		lost := proxy.LoseAnswer(texts...)
		a := c.do(t, "POST", path, body, "Idempotency-Key", token)
		<-lost
		wantStatus(t, a, 503, "unavailable")
		if !strings.Contains(a.body, "retry with the same Idempotency-Key") || a.header.Get("Retry-After") == "" {
			t.Errorf("got %s with headers %v, want to be told to retry with the same Idempotency-Key", a.body, a.header)
		}
		a = c.do(t, "POST", path, body, "Idempotency-Key", token)
		wantStatus(t, a, 201, "")
		if a.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("sent again: got %s with headers %v, want a replay", a.body, a.header)
		}
	}
	// Without a key it may have been created or not, and the response says so.
	lost := proxy.LoseAnswer("without a token")
	a := c.do(t, "POST", "/v1/pets", newPetBody("without a token", 1, "sold"))
	<-lost
	wantStatus(t, a, 503, "unavailable")
	if !strings.Contains(a.body, "may or may not have been made") {
		t.Errorf("got %s, want to be told that it may have been made", a.body)
	}
	names := map[string]int{}
	for _, p := range c.allPets(t, 0) {
		names[p.Name]++
	}
	if want := (map[string]int{"lost 0": 1, "lost 1": 1, "without a token": 1}); fmt.Sprint(names) != fmt.Sprint(want) {
		t.Errorf("stored are %v, want %v", names, want)
	}
	orders := c.get(t, "/v1/store/orders")
	if n := strings.Count(orders.body, `"petId"`); orders.status != http.StatusOK || n != 1 {
		t.Errorf("got %d %s, want one order", orders.status, orders.body)
	}
}
