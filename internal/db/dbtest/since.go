package dbtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
)

// timeline is the model of positions by time: the times of all events of a store, in Unix
// milliseconds. That of the event with id first+1 comes first.
type timeline struct {
	first int64
	times []int64
	until []int64 // the latest time up to each event
}

func newTimeline(first int64, times []int64) *timeline {
	l := &timeline{first: first, times: times, until: make([]int64, len(times))}
	latest := int64(0)
	for i, at := range times {
		latest = max(latest, at)
		l.until[i] = latest
	}
	return l
}

// skewedTimes returns the times of n events that several instances made, with clocks that
// are up to half a minute fast or slow. Many happen in the same second, others after hours.
func skewedTimes(r *rand.Rand, n int) []int64 {
	clocks := []int64{-30_000, 30_000, 0, r.Int64N(60_001) - 30_000}
	times, now := make([]int64, n), noon.Milli()
	for i := range times {
		switch r.IntN(40) {
		case 0:
			now += r.Int64N(2 * time.Hour.Milliseconds())
		case 1, 2, 3, 4:
			now += r.Int64N(45_000)
		default:
			now += r.Int64N(20)
		}
		times[i] = now + clocks[r.IntN(len(clocks))]
	}
	return times
}

// check returns an error if a position isn't right for a time: an event at or after the time
// isn't after the position, or the event after the position is more than a minute older.
func (l *timeline) check(since, position int64) error {
	newest := l.first + int64(len(l.times))
	if position < l.first || position > newest {
		return fmt.Errorf("position %d isn't in the range from %d to %d", position, l.first, newest)
	}
	if i, _ := slices.BinarySearch(l.until, since); i < len(l.times) && position > l.first+int64(i) {
		return fmt.Errorf("position %d skips event %d, which is %d ms after the time", position, l.first+int64(i)+1,
			l.times[i]-since)
	}
	if position == newest {
		return nil
	}
	if at := l.times[position-l.first]; since-at > time.Minute.Milliseconds() {
		return fmt.Errorf("event %d after position %d is %d ms older than the time", position+1, position, since-at)
	}
	return nil
}

// sample yields n times: those of some events and just beside them, times in between, and
// times before and after all events.
func (l *timeline) sample(r *rand.Rand, n int) []int64 {
	minute, oldest, newest := time.Minute.Milliseconds(), noon.Milli(), noon.Milli()
	if len(l.times) > 0 {
		oldest, newest = slices.Min(l.times), slices.Max(l.times)
	}
	all := []int64{1, oldest - minute, oldest,
		newest, newest + 1, newest + minute, newest + minute + 1, newest + 1000*minute}
	for len(all) < n {
		at := oldest + r.Int64N(newest-oldest+1)
		if len(l.times) > 0 && r.IntN(2) == 0 {
			at = l.times[r.IntN(len(l.times))]
		}
		all = append(all, at+[]int64{-1, 0, 0, 1, minute, -minute}[r.IntN(6)])
	}
	return all
}

// EventsSince checks the positions of times in stores of no event, one, and a few thousand,
// also after some were dropped. run runs a statement that isn't of the engine, because an
// engine gives every event the time of its own clock.
func EventsSince(t *testing.T, d db.DB, run func(statement string)) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	check := func(l *timeline) {
		t.Helper()
		for _, since := range l.sample(r, 400) {
			position, err := d.EventsSince(t.Context(), animalstore.AtMilli(since))
			if err == nil {
				err = l.check(since, position)
			}
			if err == nil { // reading can begin there
				_, _, err = d.Events(t.Context(), db.EventQuery{After: position, Limit: 1})
			}
			if err != nil {
				t.Fatalf("seed %d, %d events, since %d: %v", seed, len(l.times), since, err)
			}
		}
	}
	const events = 3000
	times := skewedTimes(r, events)
	stored := 0
	store := func(n int) {
		var rows []string
		for ; stored < n; stored++ {
			rows = append(rows, fmt.Sprintf("(%d, 0, 1, 1, %d, 0, '', '{}')", stored+1, times[stored]))
		}
		for chunk := range slices.Chunk(rows, 500) {
			run("INSERT INTO events (id, type, subject_id, pet_id, created_at, key_id, request_id, data) VALUES " +
				strings.Join(chunk, ", "))
		}
	}
	for _, n := range []int{0, 1, 2, events} {
		store(n)
		check(newTimeline(0, times[:n]))
	}
	const most = 700
	dropped, err := d.DropEvents(t.Context(), animalstore.AtMilli(slices.Max(times)+1), most)
	if err != nil || dropped != most {
		t.Fatalf("DropEvents = %d, %v, want %d", dropped, err, most)
	}
	check(newTimeline(most, times[most:]))
}
