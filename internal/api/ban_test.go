package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"animalstore"
)

// exhaust uses up the minute of a key on plan free.
func (s *service) exhaust(t testing.TB, key string) {
	t.Helper()
	for range 60 {
		s.do(t, call{path: "/v1/pets", key: key}).want(t, http.StatusOK, "")
	}
	s.do(t, call{path: "/v1/pets", key: key}).want(t, http.StatusTooManyRequests, animalstore.RateLimitExceeded)
}

// hammer sends on after 429 until the key is banned, and returns that response.
func (s *service) hammer(t testing.TB, key string) response {
	t.Helper()
	s.exhaust(t, key)
	s.clock.advance(time.Second + time.Millisecond)
	for range 99 {
		s.do(t, call{path: "/v1/pets", key: key}).want(t, http.StatusTooManyRequests, animalstore.RateLimitExceeded)
	}
	return s.do(t, call{path: "/v1/pets", key: key})
}

// TestBan: a client that never waits is banned, for longer each time, and served
// again to the second when the ban is over.
func TestBan(t *testing.T) {
	t.Parallel()
	s := start(t).inProcess()
	secret, id := s.planKey(t, animalstore.PlanFree)
	for i, span := range []time.Duration{5 * time.Minute, 15 * time.Minute, time.Hour, 24 * time.Hour, 24 * time.Hour} {
		got := s.hammer(t, secret)
		end := s.clock.Now().Add(span + time.Second - 1).Truncate(time.Second)
		got.want(t, http.StatusTooManyRequests, animalstore.KeyBanned)
		got.wantLimits(t, 60, 0, end)
		got.wantMessage(t, "banned", "Retry-After")
		if lines := s.log.lines("level=WARN", "banned", fmt.Sprint("key_id=", id)); len(lines) != i+1 {
			t.Errorf("ban %d: got %q in the log, want one line a ban", i+1, lines)
		}
		for left := end.Sub(s.clock.Now()); left > time.Millisecond; left /= 2 {
			s.clock.set(end.Add(-left))
			for range 3 { // which neither counts nor lengthens
				got := s.do(t, call{path: "/v1/nothing", key: secret})
				got.want(t, http.StatusTooManyRequests, animalstore.KeyBanned)
				got.wantLimits(t, 60, 0, end)
			}
		}
		s.clock.set(end)
		body := s.limitsBody(t, secret)
		if want := (banBody{Level: int64(min(i+1, 4))}); body.Ban != want || body.Strikes.Count != 0 {
			t.Errorf("after ban %d: got ban %+v and %d strikes, want %+v and none", i+1, body.Ban, body.Strikes.Count, want)
		}
		s.clock.advance(time.Minute)
	}
	t.Run("forgotten a day after", func(t *testing.T) {
		ended := s.clock.Now().Add(-time.Minute)
		s.clock.set(ended.Add(24*time.Hour - time.Millisecond))
		if got := s.limitsBody(t, secret).Ban.Level; got != 4 {
			t.Errorf("a millisecond before: got level %d, want 4", got)
		}
		s.clock.set(ended.Add(24 * time.Hour))
		if got := s.limitsBody(t, secret).Ban.Level; got != 0 {
			t.Errorf("a day after: got level %d, want 0", got)
		}
	})
}

// TestUnban: an operator's word ends a ban, and only that.
func TestUnban(t *testing.T) {
	s := start(t).inProcess()
	secret, id := s.planKey(t, animalstore.PlanFree)
	s.hammer(t, secret).want(t, http.StatusTooManyRequests, animalstore.KeyBanned)
	s.clock.advance(10 * time.Second)
	s.do(t, call{method: "POST", path: fmt.Sprint("/v1/keys/", id, "/unban"), key: s.admin}).want(t, http.StatusOK, "")
	s.clock.advance(time.Second)
	s.do(t, call{path: "/v1/pets", key: secret}).want(t, http.StatusTooManyRequests, animalstore.RateLimitExceeded)
	s.clock.advance(time.Minute)
	s.do(t, call{path: "/v1/pets", key: secret}).want(t, http.StatusOK, "")
	if got := s.limitsBody(t, secret).Ban; got != (banBody{Level: 1}) {
		t.Errorf("got %+v, want no ban and its level kept", got)
	}
	s.clock.advance(11 * time.Minute) // past the strike above
	got := s.hammer(t, secret)
	got.want(t, http.StatusTooManyRequests, animalstore.KeyBanned)
	got.wantLimits(t, 60, 0, s.clock.Now().Add(15*time.Minute+time.Second-1).Truncate(time.Second))
}

// TestBurst: what was in flight when the limit was reached costs nothing.
func TestBurst(t *testing.T) {
	s := start(t).inProcess()
	secret, _ := s.planKey(t, animalstore.PlanFree)
	s.exhaust(t, secret)
	for _, later := range []time.Duration{0, 500 * time.Millisecond, 500 * time.Millisecond} {
		s.clock.advance(later)
		for range 200 {
			s.do(t, call{path: "/v1/pets", key: secret}).want(t, http.StatusTooManyRequests, animalstore.RateLimitExceeded)
		}
	}
	s.clock.advance(time.Millisecond)
	s.do(t, call{path: "/v1/pets", key: secret}).want(t, http.StatusTooManyRequests, animalstore.RateLimitExceeded)
	s.clock.advance(time.Minute)
	if got := s.limitsBody(t, secret).Strikes; got.Count != 1 || got.Threshold != 100 {
		t.Errorf("got strikes %+v, want the one after the first second of 100", got)
	}
}

// TestPatientClient: whoever waits as told is served the moment it comes back,
// and never banned, whatever its limits.
func TestPatientClient(t *testing.T) {
	sqliteOnly(t, "limits are counted in memory, and it takes thousands of requests")
	t.Parallel()
	for _, l := range []animalstore.Limits{{PerMinute: 60, PerDay: 1_000}, {PerMinute: 1, PerDay: 3}, {PerMinute: 5, PerDay: 5}, {PerMinute: 10, PerDay: 2}} {
		t.Run(fmt.Sprint(l), func(t *testing.T) {
			s := start(t).inProcess()
			secret := s.limitedKey(t, l.PerMinute, l.PerDay)
			s.clock.advance(250 * time.Millisecond)
			started, admitted, refused := s.clock.Now(), int64(0), 0
			for waited := false; s.clock.Now().Before(started.Add(60 * time.Hour)); {
				got := s.do(t, call{path: "/v1/pets", key: secret})
				switch {
				case got.status == http.StatusOK:
					admitted++
					waited = false
				case waited:
					t.Fatalf("after %v: got %v to a client that waited, want 200", s.clock.Now().Sub(started), got)
				case got.code() == animalstore.KeyBanned:
					t.Fatalf("after %v: got %v, want no ban", s.clock.Now().Sub(started), got)
				default:
					refused++
					s.clock.advance(time.Duration(atoi(t, got.header.Get("Retry-After"))) * time.Second)
					waited = true
				}
				s.clock.advance(10 * time.Millisecond)
			}
			if want := 3 * l.PerDay; admitted != want || refused == 0 {
				t.Errorf("got %d admitted in three days and %d refused, want %d and some", admitted, refused, want)
			}
			s.clock.advance(24 * time.Hour)
			if got := s.limitsBody(t, secret); got.Strikes.Count != 0 || got.Ban != (banBody{}) {
				t.Errorf("got strikes %+v and ban %+v, want none", got.Strikes, got.Ban)
			}
		})
	}
}

// TestImpatientPlans: the larger a plan, the more it takes to be banned.
func TestImpatientPlans(t *testing.T) {
	sqliteOnly(t, "limits are counted in memory, and it takes thousands of requests")
	s := start(t).inProcess()
	for limits, want := range map[animalstore.Limits]int64{
		{PerMinute: 1, PerDay: 1}:        100,
		{PerMinute: 99, PerDay: 1_000}:   100,
		{PerMinute: 101, PerDay: 1_000}:  101,
		{PerMinute: 300, PerDay: 10_000}: 300,
		{PerMinute: 1_000, PerDay: 10}:   1_000,
	} {
		t.Run(strings.Trim(fmt.Sprint(limits), "{}"), func(t *testing.T) {
			secret, id := s.with(t, readWrite, func(k *animalstore.NewKey) { k.Limits = limits })
			now := s.clock.Now().UnixMilli()
			s.remember(t, id, animalstore.LimitState{
				Minute: animalstore.Window{Used: limits.PerMinute, End: now + 30_000, Refused: now - 1_001},
				Day:    animalstore.Window{Used: limits.PerDay, End: now + 30_000, Refused: now - 1_001},
			})
			for i := range want {
				if got := s.do(t, call{path: "/v1/pets", key: secret}); (got.code() == animalstore.KeyBanned) != (i == want-1) {
					t.Fatalf("strike %d: got %v, want a ban by strike %d", i+1, got, want)
				}
			}
		})
	}
}
