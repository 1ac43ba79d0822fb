package limittest

import (
	"slices"

	"animalstore"

	"pgregory.net/rapid"
)

// operation is something that happens in a random sequence.
type operation struct {
	name   string
	weight int
	do     func(*sequence, *rapid.T)
}

var operations = []operation{
	{"requests", 20, (*sequence).requests},
	{"burst", 8, (*sequence).burst},
	{"hammer", 14, (*sequence).hammer},
	{"wait", 8, (*sequence).wait},
	{"wait for an instant", 26, (*sequence).waitFor},
	{"wait long", 2, (*sequence).waitLong},
	{"step back", 7, (*sequence).stepBack},
	{"change plan", 4, (*sequence).changePlan},
	{"save", 5, (*sequence).save},
	{"restart", 4, (*sequence).restart},
	{"kill", 4, (*sequence).kill},
	{"unban", 4, (*sequence).unban},
}

var (
	drawOperation = rapid.SampledFrom(byWeight(operations))

	// Plans small enough to be used up, and one with a threshold above the minimum.
	drawLimits = rapid.SampledFrom([]animalstore.Limits{
		{PerMinute: 5, PerDay: 12},
		{PerMinute: 5, PerDay: 1_000},
		{PerMinute: 3, PerDay: 3},
		{PerMinute: 1, PerDay: 1},
		{PerMinute: 8, PerDay: 4},
		{PerMinute: 2, PerDay: 1_000_000},
		{PerMinute: 60, PerDay: 1_000},
		{PerMinute: 110, PerDay: 150},
	})

	drawTimeOfDay = rapid.OneOf(
		rapid.Int64Range(0, day-1),
		rapid.Int64Range(day-2*minute, day-1),
		rapid.SampledFrom([]int64{0, 1, day - 1, day - minute, day - minute - 1, 12 * hour}),
	)
	drawFew     = rapid.IntRange(1, 6)
	drawBurst   = rapid.SampledFrom([]int{12, 30, 99, 100, 101, 130})
	drawWait    = rapid.OneOf(rapid.SampledFrom([]int64{1, 999, 1000, 1001, 59_999, minute}), rapid.Int64Range(0, 2*minute))
	drawGrace   = rapid.SampledFrom([]int64{1000, 1001, 1001, 1001, 1500})
	drawNear    = rapid.SampledFrom([]int64{0, -1, 1, 0})
	drawLong    = rapid.Int64Range(0, 36*hour)
	drawBack    = rapid.OneOf(rapid.SampledFrom([]int64{1, 999, 1001, minute, hour}), rapid.Int64Range(1, 2*minute), rapid.Int64Range(1, 30*hour))
	drawBackFew = rapid.Int64Range(1, 90*second)
)

// byWeight returns each name as often as its weight. Drawing names makes a failure read
// as a list of operations.
func byWeight(operations []operation) []string {
	var names []string
	for _, o := range operations {
		for range o.weight {
			names = append(names, o.name)
		}
	}
	return names
}

func operationNamed(name string) operation {
	return operations[slices.IndexFunc(operations, func(o operation) bool { return o.name == name })]
}

func (s *sequence) requests(t *rapid.T) {
	for range drawFew.Draw(t, "requests") {
		s.request(t)
	}
}

func (s *sequence) burst(t *rapid.T) {
	for range drawBurst.Draw(t, "requests") {
		s.request(t)
	}
}

// hammer gets the key banned, unless it already is.
func (s *sequence) hammer(t *rapid.T) {
	if s.model.banned(s.now, s.plan()) {
		s.request(t)
		return
	}
	for range s.key.Limits.PerMinute + 1 {
		if d := s.request(t); !d.Allowed {
			break
		}
	}
	s.setClock(s.now + drawGrace.Draw(t, "grace"))
	for range s.plan().threshold() + s.key.Limits.PerMinute {
		if d := s.request(t); d.BannedNow {
			return
		}
	}
}

func (s *sequence) wait(t *rapid.T)     { s.setClock(s.now + drawWait.Draw(t, "milliseconds")) }
func (s *sequence) waitLong(t *rapid.T) { s.setClock(s.now + drawLong.Draw(t, "milliseconds")) }

// waitFor sets the clock to the time at which something ends, or one millisecond
// before or after.
func (s *sequence) waitFor(t *rapid.T) {
	m := &s.model
	var ends []int64
	add := func(end int64, weight int) {
		for range weight {
			if end > s.now {
				ends = append(ends, end)
			}
		}
	}
	add(m.minuteEnd, 4)
	add(m.dayEnd, 3)
	add(m.banEnd, 12)
	if m.strikes > 0 {
		add(m.firstStrike+10*minute, 2)
	}
	if m.bansInARow > 0 {
		add(m.banEnd+24*hour, 1)
	}
	if m.minuteFirstRefusal > 0 {
		add(m.minuteFirstRefusal+second, 2)
	}
	if m.dayFirstRefusal > 0 {
		add(m.dayFirstRefusal+second, 2)
	}
	add(midnightAfter(s.now), 1)
	end := rapid.SampledFrom(ends).Draw(t, "end")
	s.setClock(max(s.now, end+drawNear.Draw(t, "offset")))
}

// stepBack sets the clock back.
func (s *sequence) stepBack(t *rapid.T) {
	back := s.now - drawBack.Draw(t, "milliseconds")
	if midnight := s.now / day * day; rapid.Bool().Draw(t, "to the day before") && s.now-midnight < 2*hour {
		back = midnight - drawBackFew.Draw(t, "milliseconds before midnight")
	}
	m := &s.model
	// A window that is shortened to end exactly when another stored window ended can't
	// be told apart from it, so the higher of the two counts applies until then. In
	// practice that takes two steps back to the same second, with a new window since
	// the last save between them.
	for back+minute < m.minuteEnd && s.stored[roundUp(back+minute, second)] || back+day < m.dayEnd && s.stored[(back+day)/second*second] {
		back -= second
	}
	s.setClock(back)
	s.steady = false
	// Every server, if there are several, notices before anything else happens.
	// Otherwise one could save its longer window over the shortened one.
	for range 3 {
		s.checkStatus(t)
	}
	s.store() // shortened windows are saved at once
}

// store records which windows are now in the store.
func (s *sequence) store() { s.stored[s.model.minuteEnd], s.stored[s.model.dayEnd] = true, true }

func (s *sequence) changePlan(t *rapid.T) {
	s.setLimits(drawLimits.Draw(t, "limits"))
	s.steady = false
}

func (s *sequence) save(t *rapid.T) {
	if err := s.subject.Save(); err != nil {
		t.Fatalf("Save: %v", err)
	}
	s.saved = s.model
	s.store()
}

func (s *sequence) restart(t *rapid.T) {
	if err := s.subject.Restart(); err != nil {
		t.Fatalf("Restart: %v", err)
	}
	s.saved = s.model
	s.store()
}

func (s *sequence) kill(t *rapid.T) {
	if err := s.subject.Kill(); err != nil {
		t.Fatalf("Kill: %v", err)
	}
	if !s.subject.KillForgets() || s.model == s.saved {
		return
	}
	s.model = s.saved
	s.steady = false
	// Requests that were admitted and then lost may be admitted again: a kill may lose
	// a second. Counting the windows starts over here.
	clear(s.toMinute)
	clear(s.toDay)
}

func (s *sequence) unban(*rapid.T) {
	s.key.Unban(animalstore.AtMilli(s.now), animalstore.AtMilli(s.model.banStart))
	s.steady = false
}
