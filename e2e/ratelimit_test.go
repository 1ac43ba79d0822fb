package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"animalstore/internal/testenv"
)

// provokeBan sends requests, ignoring the responses, until the key is banned. It
// returns the end of the ban from X-RateLimit-Reset.
func (c *client) provokeBan(t testing.TB) (end string) {
	t.Helper()
	testenv.Eventually(t, "a client that never waits is banned", func() bool {
		for range 20 {
			if a := c.get(t, "/v1/pets?limit=1"); strings.Contains(a.body, "key_banned") {
				wantStatus(t, a, 429, "key_banned")
				end = a.header.Get("X-RateLimit-Reset")
				return true
			}
		}
		return false
	})
	return end
}

// wantBanned checks that a server refuses a key until the given second.
func wantBanned(t testing.TB, when string, s *server, key, end string) {
	t.Helper()
	a := newClient(t, s, key).get(t, "/v1/pets")
	if got := a.header.Get("X-RateLimit-Reset"); !strings.Contains(a.body, "key_banned") || got != end {
		t.Errorf("%s: got %d %s until %s, want the ban until %s", when, a.status, a.body, got, end)
	}
}

// TestLimitsSurvive_Slow: a ban survives the end of the server, however it ends, and counts
// survive a clean shutdown. An operator can lift a ban.
func TestLimitsSurvive_Slow(t *testing.T) {
	t.Parallel()
	s := start(t)
	key := newKey(t, s.database, "--name", "hasty", "--plan", "enterprise", "--per-minute", "1", "--per-day", "1000")
	id := keyID(t, s.database, "hasty")
	end := newClient(t, s, key).provokeBan(t)
	testenv.Eventually(t, "the ban is saved", func() bool { return strings.Contains(command(t, s.database, "show", id).stdout, "until") })
	s.kill()
	s = start(t, onDatabase(s.database))
	wantBanned(t, "after a kill", s, key, end)

	counted := newKey(t, s.database, "--name", "counted", "--plan", "pro")
	day := time.Now().UTC().YearDay()
	for range 17 {
		wantStatus(t, newClient(t, s, counted).get(t, "/v1/pets"), 200, "")
	}
	s.stop()
	s = start(t, onDatabase(s.database))
	wantBanned(t, "after SIGTERM", s, key, end)
	a := newClient(t, s, counted).get(t, "/v1/limits")
	if time.Now().UTC().YearDay() == day && !strings.Contains(a.body, fmt.Sprint(`"remaining":`, 10_000-18)) {
		t.Errorf("got %s, want 18 requests of the day counted", a.body)
	}

	command(t, s.database, "unban", id)
	c := newClient(t, s, key)
	testenv.Eventually(t, "the ban is lifted", func() bool { return !strings.Contains(c.get(t, "/v1/pets").body, "key_banned") })
}
