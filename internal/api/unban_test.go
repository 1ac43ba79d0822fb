package api_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"animalstore"
)

// TestUnbanWhateverTheClock lifts bans after the clock was set back. Each time, the
// response says whether there was a ban to lift.
func TestUnbanWhateverTheClock(t *testing.T) {
	t.Parallel()
	s := start(t).inProcess()
	unban := func(t *testing.T, id int64, lifted string) {
		t.Helper()
		got := s.do(t, call{method: "POST", path: fmt.Sprint("/v1/keys/", id, "/unban"), key: s.admin})
		got.want(t, http.StatusOK, "")
		if h := got.header.Get("Ban-Lifted"); h != lifted {
			t.Errorf("Ban-Lifted: got %q, want %q", h, lifted)
		}
		key := s.do(t, call{path: fmt.Sprint("/v1/keys/", id), key: s.admin})
		if got.header.Get("ETag") != key.header.Get("ETag") {
			t.Errorf("got ETag %s, want the key's %s", got.header.Get("ETag"), key.header.Get("ETag"))
		}
	}
	for _, step := range []time.Duration{0, time.Second, time.Hour, 20 * time.Hour} {
		t.Run(step.String(), func(t *testing.T) {
			secret, id := s.planKey(t, animalstore.PlanFree)
			unban(t, id, "false")
			s.clock.advance(time.Second)
			s.hammer(t, secret).want(t, http.StatusTooManyRequests, animalstore.KeyBanned)
			s.clock.advance(-step)
			s.do(t, call{path: "/v1/pets", key: secret}).want(t, http.StatusTooManyRequests, animalstore.KeyBanned)
			unban(t, id, "true")
			unban(t, id, "false")
			s.clock.advance(2 * time.Minute)
			s.do(t, call{path: "/v1/pets", key: secret}).want(t, http.StatusOK, "")
			s.hammerOn(t, secret)
			unban(t, id, "true")
		})
	}
}

// TestClockThatWasAhead: a day that was used up while the clock was a month ahead
// doesn't refuse the key for a month.
func TestClockThatWasAhead(t *testing.T) {
	t.Parallel()
	s := start(t).inProcess()
	secret := s.limitedKey(t, 10, 3)
	s.clock.advance(30 * 24 * time.Hour)
	for range 3 {
		s.do(t, call{path: "/v1/pets", key: secret}).want(t, http.StatusOK, "")
	}
	s.clock.advance(-30 * 24 * time.Hour)
	got := s.do(t, call{path: "/v1/pets", key: secret})
	got.want(t, http.StatusTooManyRequests, animalstore.DailyQuotaExceeded)
	wait := time.Duration(atoi(t, got.header.Get("Retry-After"))) * time.Second
	if wait > 24*time.Hour {
		t.Errorf("Retry-After is %v, want at most a day", wait)
	}
	s.clock.advance(wait)
	s.do(t, call{path: "/v1/pets", key: secret}).want(t, http.StatusOK, "")
}

// hammerOn gets a key banned whose minute has been used in part.
func (s *service) hammerOn(t testing.TB, secret string) {
	t.Helper()
	for range 300 {
		if got := s.do(t, call{path: "/v1/pets", key: secret}); got.code() == animalstore.RateLimitExceeded {
			s.clock.advance(20 * time.Millisecond)
		} else if got.code() == animalstore.KeyBanned {
			return
		}
	}
	t.Fatal("no ban after 300 requests")
}
