package api_test

import (
	"net/http"
	"testing"
	"time"

	"animalstore"
)

// TestBanEndsFollowers: a ban ends the streams of a key and its requests that wait, and
// the next request says why. Others go on.
func TestBanEndsFollowers(t *testing.T) {
	s := start(t)
	secret, _ := s.planKey(t, animalstore.PlanFree)
	path := s.latest(t, "", "&wait=30&type=order.*")
	other := s.openStream(t, call{path: "/v1/events?after=latest&type=pet.*"})
	st := s.openStream(t, call{path: "/v1/events?after=latest", key: secret})
	began := time.Now()
	waiting := s.beginWaiting(t, call{path: path, key: secret})
	sent := 0
	for got := (response{}); ; sent++ {
		if got = s.do(t, call{path: "/v1/pets", key: secret}); got.code() == animalstore.KeyBanned {
			break
		}
		if got.status == http.StatusTooManyRequests && got.code() != animalstore.RateLimitExceeded || sent > 500 {
			t.Fatalf("request %d: got %v, want a ban", sent, got)
		}
		if sent == 60 {
			s.clock.advance(time.Second + time.Millisecond) // strikes begin a second after the first 429
		}
	}
	st.awaitEnd()
	if got := readEventPage(t, <-waiting); len(got.events) != 0 {
		t.Errorf("the request that waited got %q, want nothing", typesOf(got.events))
	}
	if took := time.Since(began); took >= 30*time.Second {
		t.Errorf("the request waited for %v, which is to its end, want until the ban", took)
	}
	s.do(t, call{path: path, key: secret}).want(t, http.StatusTooManyRequests, animalstore.KeyBanned)
	s.createPet(t, "Rex")
	other.next() // goes on
}
