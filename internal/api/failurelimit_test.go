package api

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"animalstore"
)

// TestFailuresAreLimited: of the failures of a key with one code, a server stores one a
// second, so that a loop doesn't replace everything else, and of all keys 1,000 a second. It
// counts those that are too many.
func TestFailuresAreLimited(t *testing.T) {
	l := newFailureLog(nil)
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	for second := range 3 {
		for range 100 {
			for _, code := range []animalstore.Code{animalstore.RateLimitExceeded, animalstore.PetNotFound} {
				l.add(animalstore.Failure{KeyID: 1, Code: code, Time: animalstore.At(now.Add(time.Duration(second) * time.Second))})
			}
		}
	}
	var kept []string
	for _, f := range l.pending {
		kept = append(kept, fmt.Sprint(f.Time.Second(), " ", f.Code))
	}
	want := []string{"0 rate_limit_exceeded", "0 pet_not_found", "1 rate_limit_exceeded", "1 pet_not_found", "2 rate_limit_exceeded", "2 pet_not_found"}
	if !slices.Equal(kept, want) || l.lostSoFar() != 0 {
		t.Errorf("got %q and %d lost, want %q and none", kept, l.lostSoFar(), want)
	}
	for key := range int64(1000) {
		l.add(animalstore.Failure{KeyID: 2 + key, Code: animalstore.PetNotFound, Time: animalstore.At(now.Add(time.Minute))})
	}
	if len(l.pending) != 1000 || l.lostSoFar() != 6 {
		t.Errorf("got %d failures to store and %d lost, want 1000 and 6", len(l.pending), l.lostSoFar())
	}
}
