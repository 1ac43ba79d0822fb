package limittest

import (
	"context"
	"flag"
	"strconv"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/ratelimit"
	"animalstore/internal/testenv"

	"pgregory.net/rapid"
)

// The number of random sequences, and the mean number of operations in one.
const (
	shortRun, soakRun             = 1_500, 100_000
	shortCostlyRun, soakCostlyRun = 100, 10_000
	meanSize                      = 60
)

// testSequences runs the same operations on a limiter and on the model.
func testSequences(t *testing.T, newSubject New) {
	subject := newSubject(t)
	sequences, soak := shortRun, soakRun
	if isCostly(subject) {
		sequences, soak = shortCostlyRun, soakCostlyRun
	}
	configureRapid(t, testenv.Count(sequences, soak))
	cover := &coverage{count: make(map[string]int64)}
	forgets := subject.KillForgets()
	start := time.Now()
	var missed []string
	for range 10 { // by chance, a short run may miss a rare situation
		rapid.Check(t, func(rt *rapid.T) {
			cover.sequences++
			s := newSequence(rt, newSubject(t), cover)
			rt.Repeat(map[string]func(*rapid.T){"step": s.step})
		})
		if missed = cover.missed(forgets); len(missed) == 0 || t.Failed() {
			break
		}
	}
	for _, m := range missed {
		t.Error(m)
	}
	t.Logf("%stook %s", cover.table(forgets), time.Since(start).Round(time.Millisecond))
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
	cover   *coverage

	// The last decision, while clock and plan are steady.
	last   ratelimit.Decision
	steady bool
	lastAt int64

	// The number of requests admitted to each window, and the largest limits so far.
	toMinute, toDay map[int64]int64
	most            animalstore.Limits
}

func newSequence(t *rapid.T, subject Subject, cover *coverage) *sequence {
	s := &sequence{
		subject: subject,
		cover:   cover,
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
	s.cover.operations++
	operationNamed(drawOperation.Draw(t, "operation")).do(s, t)
	s.checkStatus(t)
}

// request makes one request and compares the decision with the model's.
func (s *sequence) request(t *rapid.T) ratelimit.Decision {
	s.cover.requests++
	d, err := s.subject.Take(context.Background(), s.key)
	if err != nil {
		t.Fatalf("Take: %v", err)
	}
	before := s.model
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
	s.coverRequest(before, d)
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
		s.cover.saw("invariant: Remaining above 0, and admitted")
	case s.now < reset:
		if d.Allowed {
			t.Fatalf("at %s: admitted, but nothing remained until %s", clock(s.now), clock(reset))
		}
		s.cover.saw("invariant: Remaining 0, and refused before Reset")
	case s.last.Code == animalstore.KeyBanned && !d.Allowed:
		if d.Code == animalstore.KeyBanned && !d.BannedNow {
			t.Fatalf("at %s: still banned, but the ban was to end at %s", clock(s.now), clock(reset))
		}
	default:
		if !d.Allowed {
			t.Fatalf("at %s: %s, but the limit was to reset at %s", clock(s.now), d.Code, clock(reset))
		}
		s.cover.saw("invariant: Remaining 0, and admitted from Reset on")
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

// coverRequest records the situation of a request; before is the model before it.
func (s *sequence) coverRequest(before model, d ratelimit.Decision) {
	c, m := s.cover, &s.model
	switch {
	case d.Allowed:
		c.saw("admitted")
		c.sawIf(before.dayEnd > 0 && before.dayOver(s.now), "midnight between two requests")
		c.sawIf(m.minuteEnd > m.dayEnd, "minute window over midnight")
	case d.BannedNow:
		level := m.bansInARow
		c.saw("ban of level " + strconv.FormatInt(level, 10))
		c.sawIf(level == 4 && before.bansInARow == 4, "ban of level 4 again")
	case d.Code == animalstore.KeyBanned:
		c.saw("refused by a ban")
	case d.Code == animalstore.DailyQuotaExceeded:
		c.saw("refused by the day")
	default:
		c.saw("refused by the minute")
		c.sawIf(!m.dayOver(s.now) && m.dayUsed >= s.key.Limits.PerDay, "refused by the minute, though the day is exhausted too")
	}
	c.sawIf(!d.Allowed && d.Code != animalstore.KeyBanned && m.strikes == before.strikes, "refused within the grace second")
	c.sawIf(before.bansInARow > 0 && m.bansInARow == 0, "level cleared")
	c.sawIf(before.strikes > 0 && m.strikes < before.strikes && !d.BannedNow, "strikes forgotten")
}
