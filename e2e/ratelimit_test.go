package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"animalstore/internal/db/postgres/pgtest"
	"animalstore/internal/ratelimit/redistest"
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

// TestLimitsSurvive: a ban survives the end of the server, however it ends, and counts
// survive a clean shutdown. An operator can lift a ban within a second.
func TestLimitsSurvive(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	awayFromMidnight(t)
	s := start(t)
	key := newKey(t, s.database, "--name", "hasty", "--plan", "enterprise", "--per-minute", "1", "--per-day", "1000")
	id := keyID(t, s.database, "hasty")
	end := newClient(t, s, key).provokeBan(t)
	testenv.Eventually(t, "the ban is saved", func() bool { return strings.Contains(command(t, s.database, "show", id).stdout, "until") })
	s.kill()
	s = start(t, onDatabase(s.database))
	wantBanned(t, "after a kill", s, key, end)

	counted := newKey(t, s.database, "--name", "counted", "--plan", "pro")
	for range 17 {
		wantStatus(t, newClient(t, s, counted).get(t, "/v1/pets"), 200, "")
	}
	s.stop()
	s = start(t, onDatabase(s.database))
	wantBanned(t, "after SIGTERM", s, key, end)
	if a := newClient(t, s, counted).get(t, "/v1/limits"); !strings.Contains(a.body, fmt.Sprint(`"remaining":`, 10_000-18)) {
		t.Errorf("got %s, want 18 requests of the day counted", a.body)
	}

	command(t, s.database, "unban", id)
	c := newClient(t, s, key)
	seenWithinASecond(t, "the ban is lifted", time.Now(), func() bool { return !strings.Contains(c.get(t, "/v1/pets").body, "key_banned") })
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

const (
	fallbackNow       = "animalstore_limit_fallback"
	fallbackDecisions = "animalstore_limit_fallback_decisions_total"
	sharedDecisions   = "animalstore_limit_shared_decisions_total"
)

// awaitShared waits until a server has asked Redis again.
func (s *server) awaitShared() {
	s.t.Helper()
	testenv.Eventually(s.t, "the server shares its limits", func() bool {
		return strings.Contains(s.metrics(), "\n"+fallbackNow+" 0\n")
	})
}

// TestRedisGone: instances share limits through Redis. While it doesn't answer, each
// admits at most the plan, no ban is lifted, no request fails, and all are ready.
func TestRedisGone(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	redis := redistest.Start(t)
	database := pgtest.Shared(t).NewDatabase(t, "")
	instances := startInstances(t, 2, database, withOps(), withArgs("--redis", redis.URL()))
	rude := newKey(t, database, "--name", "rude", "--plan", "enterprise", "--per-minute", "1", "--per-day", "1000")
	banEnd := newClient(t, instances[0].server, rude).provokeBan(t)
	wantShared(t, database, instances, "at first")

	for _, outage := range []struct {
		name       string
		begin, end func()
	}{
		{"killed", redis.Kill, redis.Restart}, // and emptied
		{"frozen", redis.Stop, redis.Cont},
	} {
		outage.begin()
		const limit = 20
		key := newKey(t, database, "--name", outage.name, "--plan", "enterprise", "--per-minute", strconv.Itoa(limit), "--per-day", "1000")
		for i, in := range instances {
			wantBanned(t, outage.name, in.server, rude, banEnd)
			if n := admitted(t, in.server, key, limit+5); n > limit {
				t.Errorf("%s: instance %d admitted %d, want at most %d", outage.name, i, n, limit)
			}
			if in.metric(fallbackNow) != 1 || in.metric(fallbackDecisions) == 0 || in.metric("animalstore_redis_failures_total") == 0 {
				t.Errorf("%s: the metrics of instance %d don't show that Redis is gone", outage.name, i)
			}
			wantStatus(t, newClient(t, in.server, "").get(t, "/readyz"), 200, "")
		}
		outage.end()
		for _, in := range instances {
			in.awaitShared()
			wantBanned(t, outage.name+", and back", in.server, rude, banEnd)
		}
		wantShared(t, database, instances, "after Redis was "+outage.name)
	}
}

// admitted sends requests, and returns how many were admitted. The others must be refused
// because of the limit.
func admitted(t testing.TB, s *server, key string, requests int) (n int) {
	t.Helper()
	c := newClient(t, s, key)
	for range requests {
		if a := c.get(t, "/v1/pets"); a.status == 200 {
			n++
		} else {
			wantStatus(t, a, 429, "rate_limit_exceeded")
		}
	}
	return n
}

// wantShared checks that all instances together admit exactly the limit of a new key. On
// a busy machine, an instance may fall back in the middle, and the key is tried again.
func wantShared(t testing.TB, database string, instances []*instance, when string) {
	t.Helper()
	const limit = 30
	for attempt := range 20 {
		key := newKey(t, database, "--name", fmt.Sprint(when, attempt), "--plan", "enterprise", "--per-minute", strconv.Itoa(limit), "--per-day", "1000")
		n, alone := 0, 0.0
		for _, in := range instances {
			in.awaitShared()
			alone -= in.metric(fallbackDecisions)
			n += admitted(t, in.server, key, limit-10)
			alone += in.metric(fallbackDecisions)
		}
		if alone > 0 {
			continue
		}
		if n != limit || instances[0].metric(sharedDecisions) == 0 {
			t.Errorf("%s: got %d admitted by all instances, want %d", when, n, limit)
		}
		return
	}
	t.Errorf("%s: Redis was too slow in every attempt", when)
}
