package e2e

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"animalstore/internal/testenv"
)

// standing is the response of GET /v1/limits.
type standing struct {
	Minute, Day window
	Strikes     struct{ Count int64 }
	Ban         struct{ Level int64 }
}

type window struct {
	Limit, Remaining int64
	Reset            time.Time
}

func (c *client) limits(t testing.TB) standing {
	t.Helper()
	a := c.get(t, "/v1/limits")
	wantStatus(t, a, 200, "")
	var s standing
	if err := json.Unmarshal([]byte(a.body), &s); err != nil {
		t.Fatalf("%v in %s", err, a.body)
	}
	return s
}

// keyID is the id of the key with this name.
func keyID(t testing.TB, database, name string) string {
	t.Helper()
	var all []struct {
		ID   int64
		Name string
	}
	list := run(t, "keys", "list", "--json", "--database", "sqlite:"+database)
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
	r := run(t, append(append([]string{"keys"}, args...), "--database", "sqlite:"+database)...)
	if r.code != 0 {
		t.Fatalf("keys %s: exit code %d\n%s", strings.Join(args, " "), r.code, r.stderr)
	}
	return r
}

// awayFromMidnight waits if a day (UTC) is about to end, which would reset the count
// that this test checks.
func awayFromMidnight(t testing.TB) {
	t.Helper()
	if left := time.Until(time.Now().UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)); left < 2*time.Minute {
		t.Logf("waiting %v for the next day", left)
		time.Sleep(left + time.Second)
	}
}

// untilItEnds sends SIGTERM to a server and then requests until it is gone. It calls
// answered with each response: the last ones were sent after everything else was saved.
func untilItEnds(t testing.TB, s *server, c *client, path string, answered func(response)) {
	t.Helper()
	s.signal(syscall.SIGTERM)
	for n := 0; ; n++ {
		a, err := c.try("GET", path, "")
		if err != nil {
			if n == 0 {
				t.Error("nothing was answered after the signal: the load is too light")
			}
			break
		}
		answered(a)
	}
	if code := s.wait(); code != 0 {
		t.Errorf("exit code %d after SIGTERM, want 0.\n%s", code, s.output())
	}
}

// TestCountsSurviveTermination: a clean shutdown loses no count.
func TestCountsSurviveTermination(t *testing.T) {
	t.Parallel()
	awayFromMidnight(t)
	s := start(t)
	const limit = 1_000_000
	key := newKey(t, s.database, "--name", "counted", "--plan", "enterprise", "--per-minute", fmt.Sprint(limit), "--per-day", fmt.Sprint(limit))
	used := int64(0)
	var minute window
	for round := range 3 {
		c := newClient(t, s, key)
		for range 17 + round {
			wantStatus(t, c.get(t, "/v1/pets"), 200, "")
			used++
		}
		got := c.limits(t)
		used++
		if got.Day.Remaining != limit-used {
			t.Errorf("round %d: %d of the day remain, want %d", round, got.Day.Remaining, limit-used)
		}
		// On a slow machine the minute may be over; the day cannot be.
		if got.Minute.Reset.Equal(minute.Reset) && got.Minute.Remaining != limit-used {
			t.Errorf("round %d: %d of the minute remain, want %d", round, got.Minute.Remaining, limit-used)
		}
		minute = got.Minute
		untilItEnds(t, s, c, "/v1/pets", func(a response) {
			wantStatus(t, a, 200, "")
			used++
		})
		s = start(t, onDatabase(s.database))
	}
}

// provokeBan sends requests, ignoring the responses, until the key is banned. It
// returns the end of the ban from X-RateLimit-Reset.
func (c *client) provokeBan(t testing.TB) (end string) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if a := c.get(t, "/v1/pets?limit=1"); strings.Contains(a.body, "key_banned") {
			wantStatus(t, a, 429, "key_banned")
			return a.header.Get("X-RateLimit-Reset")
		}
	}
	t.Fatal("a client that never waits isn't banned after 2 minutes")
	return ""
}

// TestBanSurvives: a ban survives the end of the server, however it ends, with the same
// end time, and an operator can lift it within a second.
func TestBanSurvives(t *testing.T) {
	t.Parallel()
	s := start(t)
	key := newKey(t, s.database, "--name", "hasty", "--plan", "enterprise", "--per-minute", "1", "--per-day", "1000")
	id := keyID(t, s.database, "hasty")
	end := newClient(t, s, key).provokeBan(t)
	same := func(when string) {
		t.Helper()
		a := newClient(t, s, key).get(t, "/v1/pets")
		if !strings.Contains(a.body, "key_banned") || a.header.Get("X-RateLimit-Reset") != end {
			t.Errorf("%s: got %d %s until %s, want the ban until %s", when, a.status, a.body, a.header.Get("X-RateLimit-Reset"), end)
		}
	}
	show := func() string { return command(t, s.database, "show", id).stdout }
	testenv.Eventually(t, "the ban is saved", func() bool { return strings.Contains(show(), "until") })
	s.kill()
	s = start(t, onDatabase(s.database))
	same("after a kill")
	s.stop()
	s = start(t, onDatabase(s.database))
	same("after SIGTERM")

	c := newClient(t, s, key)
	command(t, s.database, "unban", id)
	seenWithinASecond(t, "the ban is lifted", func() bool {
		return !strings.Contains(c.get(t, "/v1/pets").body, "key_banned")
	})
	if got := show(); !regexp.MustCompile(`Banned\s+no`).MatchString(got) {
		t.Errorf("keys show reports a ban:\n%s", got)
	}
	s.stop()
	s = start(t, onDatabase(s.database))
	if a := newClient(t, s, key).get(t, "/v1/pets"); strings.Contains(a.body, "key_banned") {
		t.Errorf("after a restart: got %d %s, want it to stay lifted", a.status, a.body)
	}
}

// TestTrustedProxies: the flag decides whose X-Forwarded-For is used.
func TestTrustedProxies(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"127.0.0.0/8,::1", "127.0.0.1"} {
		s := start(t, withArgs("--trusted-proxies", flag))
		c := newClient(t, s, "")
		for i, hop := range []string{"203.0.113.1", "203.0.113.2", "6.6.6.6, 203.0.113.1"} {
			want := []string{"2999", "2999", "2998"}[i]
			if a := c.do(t, "GET", "/v1/pets", "", "X-Forwarded-For", hop); a.header.Get("X-RateLimit-Remaining") != want {
				t.Errorf("%s by %s: %s remain, want %s", hop, flag, a.header.Get("X-RateLimit-Remaining"), want)
			}
		}
	}
	s := start(t)
	for i := range 3 {
		a := newClient(t, s, "").do(t, "GET", "/v1/pets", "", "X-Forwarded-For", fmt.Sprint("203.0.113.", i))
		if got, want := a.header.Get("X-RateLimit-Remaining"), fmt.Sprint(2999-i); got != want {
			t.Errorf("no trusted proxies: %s remain, want %s", got, want)
		}
	}
}
