package limittest

import (
	"context"
	"flag"
	"strconv"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/ratelimit"

	"pgregory.net/rapid"
)

// meanSize is the mean number of operations in a sequence.
const meanSize = 60

// testSequences runs the same operations on a limiter and on the model.
func testSequences(t *testing.T, newSubject New, sequences int) {
	configureRapid(t, sequences)
	rapid.Check(t, func(rt *rapid.T) {
		s := newSequence(rt, newSubject(t))
		rt.Repeat(map[string]func(*rapid.T){"step": s.step})
	})
}

// configureRapid sets the size of the run, unless the command line does. A failure
// prints its seed; it leaves no file in the source tree.
func configureRapid(t *testing.T, sequences int) {
	given := make(map[string]bool)
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, value := range map[string]string{
		"rapid.checks":     strconv.Itoa(sequences),
		"rapid.steps":      strconv.Itoa(meanSize),
		"rapid.nofailfile": "true",
	} {
		f := flag.Lookup(name)
		if given[name] {
			continue
		}
		old := f.Value.String()
		if err := f.Value.Set(value); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Value.Set(old) })
	}
}

// sequence is one run of operations on a limiter and on the model.
type sequence struct {
	subject Subject
	model   model
	saved   model          // the state after a kill
	stored  map[int64]bool // the ends of windows that were saved
	key     *animalstore.Key
	now     int64

	// The last decision, while clock and plan are steady.
	last   ratelimit.Decision
	steady bool
	lastAt int64

	// The number of requests admitted to each window, and the largest limits so far.
	toMinute, toDay map[int64]int64
	most            animalstore.Limits
}

func newSequence(t *rapid.T, subject Subject) *sequence {
	s := &sequence{
		subject: subject,
		stored:  make(map[int64]bool),
		key:     &animalstore.Key{ID: rapid.SampledFrom([]int64{1, 64, 1 << 40}).Draw(t, "key")},
		toDay:   make(map[int64]int64), toMinute: make(map[int64]int64),
	}
	s.setLimits(drawLimits.Draw(t, "limits"))
	s.setClock(milli("2026-03-10T00:00:00Z") + drawTimeOfDay.Draw(t, "time of day"))
	return s
}

func (s *sequence) plan() plan {
	return plan{s.key.Limits.PerMinute, s.key.Limits.PerDay, s.key.UnbannedAt.Milli()}
}

func (s *sequence) setClock(now int64) {
	s.now = now
	s.subject.SetClock(time.UnixMilli(now))
}

func (s *sequence) setLimits(l animalstore.Limits) {
	s.key.Limits = l
	s.most = animalstore.Limits{PerMinute: max(s.most.PerMinute, l.PerMinute), PerDay: max(s.most.PerDay, l.PerDay)}
}

// step runs one operation and the checks after it.
func (s *sequence) step(t *rapid.T) {
	operationNamed(drawOperation.Draw(t, "operation")).do(s, t)
	s.checkStatus(t)
}

// request makes one request and compares the decision with the model's.
func (s *sequence) request(t *rapid.T) ratelimit.Decision {
	d, err := s.subject.Take(context.Background(), s.key)
	if err != nil {
		t.Fatalf("Take: %v", err)
	}
	a := s.model.take(s.now, s.plan())
	want := ratelimit.Decision{
		Allowed: a.allowed, Code: animalstore.Code(a.code), Limit: a.limit, Remaining: a.remaining,
		Reset: a.reset, RetryAfter: a.retryAfter, BannedNow: a.bannedNow,
	}
	if d != want {
		t.Fatalf("at %s, %+v\n got %+v\nwant %+v", clock(s.now), s.key.Limits, d, want)
	}
	s.checkInvariant(t, d)
	s.checkWindows(t, d)
	if d.BannedNow { // it is saved before the response
		s.saved = s.model
		s.store()
	}
	s.last, s.lastAt = d, s.now
	s.steady = true
	return d
}

// checkInvariant checks what the headers of one request promise about the next,
// without using the model.
func (s *sequence) checkInvariant(t *rapid.T, d ratelimit.Decision) {
	if !d.Allowed {
		if wait := (d.Reset*second - s.now + 999) / second; d.RetryAfter != max(1, wait) {
			t.Fatalf("at %s: Retry-After is %d, but Reset is %d s away", clock(s.now), d.RetryAfter, wait)
		}
		if d.Remaining != 0 {
			t.Fatalf("at %s: refused with %d remaining", clock(s.now), d.Remaining)
		}
	}
	if !s.steady {
		return
	}
	switch reset := s.last.Reset * second; {
	case s.last.Remaining > 0:
		if !d.Allowed {
			t.Fatalf("at %s: %d remained at %s, but %s", clock(s.now), s.last.Remaining, clock(s.lastAt), d.Code)
		}
	case s.now < reset:
		if d.Allowed {
			t.Fatalf("at %s: admitted, but nothing remained until %s", clock(s.now), clock(reset))
		}
	case s.last.Code == animalstore.KeyBanned && !d.Allowed:
		if d.Code == animalstore.KeyBanned && !d.BannedNow {
			t.Fatalf("at %s: still banned, but the ban was to end at %s", clock(s.now), clock(reset))
		}
	default:
		if !d.Allowed {
			t.Fatalf("at %s: %s, but the limit was to reset at %s", clock(s.now), d.Code, clock(reset))
		}
	}
}

// checkWindows counts admissions per window, which neither a clock set back nor a
// restart may exceed.
func (s *sequence) checkWindows(t *rapid.T, d ratelimit.Decision) {
	if !d.Allowed {
		return
	}
	s.toMinute[s.model.minutes]++
	s.toDay[s.model.days]++
	if n := s.toMinute[s.model.minutes]; n > s.most.PerMinute {
		t.Fatalf("at %s: %d requests admitted to the minute that ends at %s", clock(s.now), n, clock(s.model.minuteEnd))
	}
	if n := s.toDay[s.model.days]; n > s.most.PerDay {
		t.Fatalf("at %s: %d requests admitted to the day that ends at %s", clock(s.now), n, clock(s.model.dayEnd))
	}
}

// checkStatus compares Status with the model.
func (s *sequence) checkStatus(t *rapid.T) {
	st, err := s.subject.Status(context.Background(), s.key)
	if err != nil {
		t.Fatalf("Status: %v", err)
	}
	w := s.model.standing(s.now, s.plan())
	want := ratelimit.Status{
		Minute:      ratelimit.WindowStatus{Limit: s.key.Limits.PerMinute, Remaining: w.minuteLeft, Reset: animalstore.AtMilli(w.minuteReset)},
		Day:         ratelimit.WindowStatus{Limit: s.key.Limits.PerDay, Remaining: w.dayLeft, Reset: animalstore.AtMilli(w.dayReset)},
		Strikes:     w.strikes,
		Threshold:   w.threshold,
		BannedAt:    animalstore.AtMilli(w.bannedAt),
		BannedUntil: animalstore.AtMilli(w.bannedUntil),
		BanLevel:    w.level,
	}
	if st != want {
		t.Fatalf("at %s\n got %+v\nwant %+v", clock(s.now), st, want)
	}
}
