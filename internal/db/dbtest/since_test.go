package dbtest

import (
	"errors"
	"math/rand/v2"
	"testing"

	"animalstore"
	"animalstore/internal/db"
)

// TestPositionSince: the search for a time reads at most 50 events, however many there are.
func TestPositionSince(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for _, n := range []int{0, 1, 2, 3, 100, 1_000_000} {
		const first = 1000
		l := newTimeline(first, skewedTimes(r, n))
		for _, since := range l.sample(r, 2000) {
			reads := 0
			timeOf := func(id int64) (int64, bool, error) {
				reads++
				if id <= first || id > first+int64(n) {
					t.Fatalf("seed %d: read event %d of %d to %d", seed, id, first+1, first+n)
				}
				return l.times[id-first-1], true, nil
			}
			position, err := db.PositionSince(first, first+int64(n), animalstore.AtMilli(since), timeOf)
			if err == nil {
				err = l.check(since, position)
			}
			if err != nil || reads > 50 {
				t.Fatalf("seed %d, %d events, since %d: %d reads, %v", seed, n, since, reads, err)
			}
		}
	}
}

// TestPositionSinceDuringDrop: events that are dropped during a search count as too old, and
// an error ends it.
func TestPositionSinceDuringDrop(t *testing.T) {
	const first, newest, dropped = 10, 1000, 400
	since := animalstore.AtMilli(noon.Milli() - db.ClockSkew.Milliseconds())
	position, err := db.PositionSince(first, newest, since, func(id int64) (int64, bool, error) {
		return noon.Milli() + id, id > dropped, nil
	})
	if err != nil || position != dropped {
		t.Errorf("got %d, %v, want %d", position, err, dropped)
	}
	fails := func(int64) (int64, bool, error) { return 0, false, errNotNow }
	if _, err := db.PositionSince(first, newest, since, fails); !errors.Is(err, errNotNow) {
		t.Errorf("got %v, want %v", err, errNotNow)
	}
}
