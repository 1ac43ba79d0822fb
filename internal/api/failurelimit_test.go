package api

import (
	"testing"

	"animalstore"
)

// TestFailuresOfManyKeys: a server stores 1,000 failures a second, and counts the others.
func TestFailuresOfManyKeys(t *testing.T) {
	l := newFailureLog(nil)
	for key := range int64(1001) {
		l.add(animalstore.Failure{KeyID: key, Code: animalstore.PetNotFound})
	}
	if len(l.pending) != 1000 || l.lostSoFar() != 1 {
		t.Errorf("got %d failures to store and %d lost, want 1000 and 1", len(l.pending), l.lostSoFar())
	}
}
