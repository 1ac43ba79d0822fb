package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// refusedWithinASecond asks again and again until the key is refused. The promise
// is kept if no request sent more than a second after since was served.
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

func TestKeysWhileServing(t *testing.T) {
	t.Parallel()
	s := start(t)
	database := "sqlite:" + s.database

	reader := newClient(t, s, newKey(t, s.database, "--name", "reader", "--permissions", "read", "--plan", "enterprise", "--per-minute", "1000000", "--per-day", "1000000"))
	wantStatus(t, reader.get(t, "/v1/pets"), 200, "")
	wantStatus(t, reader.do(t, "POST", "/v1/pets", `{"name":"Rex","categoryId":1}`), 403, "insufficient_permission")

	var all []struct {
		ID   int64
		Name string
	}
	list := run(t, "keys", "list", "--json", "--database", database)
	if err := json.Unmarshal([]byte(list.stdout), &all); err != nil || len(all) != 2 || all[0].Name != "reader" || all[1].Name != "owner" {
		t.Fatalf("keys list --json: %v\n%s%s", err, list.stdout, list.stderr)
	}
	if r := run(t, "keys", "revoke", fmt.Sprint(all[0].ID), "--database", database); r.code != 0 {
		t.Fatalf("keys revoke: exit code %d\n%s", r.code, r.stderr)
	}
	refusedWithinASecond(t, reader, time.Now())
	wantStatus(t, newClient(t, s, s.ownerKey()).get(t, "/v1/pets"), 200, "")
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
