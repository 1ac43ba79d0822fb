package limittest

// This file is a second implementation of the contract, to compare limiters with. It
// shares nothing with package ratelimit, and is written to be simple rather than short.
// Times are Unix milliseconds.

const (
	second = 1000
	minute = 60 * second
	hour   = 60 * minute
	day    = 24 * hour
)

// model is the state of one key as the contract defines it.
//
// No rule checks whether something has started yet, only whether it has ended. So
// windows and bans stay the same when the clock is set back.
type model struct {
	minuteUsed         int64
	minuteEnd          int64
	minuteFirstRefusal int64 // 0: it hasn't refused anything

	dayUsed         int64
	dayEnd          int64
	dayFirstRefusal int64

	minutes, days int64 // how many windows were opened

	strikes     int64
	firstStrike int64

	banStart   int64
	banEnd     int64
	bansInARow int64
}

// plan is what the model needs to know about a key.
type plan struct {
	perMinute, perDay int64
	unbannedAt        int64 // when an operator last lifted bans, 0 for never
}

// threshold is the number of strikes that causes a ban.
func (p plan) threshold() int64 {
	if p.perMinute > 100 {
		return p.perMinute
	}
	return 100
}

// expected is the decision that the model expects.
type expected struct {
	allowed    bool
	code       string
	limit      int64
	remaining  int64
	reset      int64
	retryAfter int64
	bannedNow  bool
}

// standing is the status that the model expects.
type standing struct {
	minuteLeft, minuteReset int64
	dayLeft, dayReset       int64
	strikes, threshold      int64
	bannedAt                int64
	bannedUntil             int64 // 0: not banned
	level                   int64
}

func (m *model) minuteOver(now int64) bool { return now >= m.minuteEnd }
func (m *model) dayOver(now int64) bool    { return now >= m.dayEnd }

// banned reports whether there is a ban that hasn't been lifted.
func (m *model) banned(now int64, p plan) bool { return now < m.banEnd && m.banStart > p.unbannedAt }

// shorten ends windows that couldn't have started at now. They are from before the
// clock was set back.
func (m *model) shorten(now int64) {
	if longest := roundUp(now+minute, second); m.minuteEnd > longest {
		m.minuteEnd = longest
	}
	if longest := (now + day) / second * second; m.dayEnd > longest {
		m.dayEnd = longest
	}
	if m.firstStrike > now {
		m.firstStrike = now
	}
}

// lift applies an operator's unban: the ban ends in the second in which it was
// lifted.
func (m *model) lift(p plan) {
	if m.banStart <= p.unbannedAt && p.unbannedAt < m.banEnd {
		m.banEnd = p.unbannedAt - p.unbannedAt%second
	}
}

// pass clears strikes and level when they have expired.
func (m *model) pass(now int64) {
	if m.strikes > 0 && now >= m.firstStrike+10*minute {
		m.strikes = 0
	}
	if m.bansInARow > 0 && now >= m.banEnd+24*hour {
		m.bansInARow = 0
	}
}

// take is one request.
func (m *model) take(now int64, p plan) expected {
	m.shorten(now)
	m.lift(p)
	m.pass(now)

	if m.banned(now, p) {
		return refusal(now, "key_banned", p.perMinute, m.banEnd)
	}

	minuteExhausted := !m.minuteOver(now) && m.minuteUsed >= p.perMinute
	dayExhausted := !m.dayOver(now) && m.dayUsed >= p.perDay
	if !minuteExhausted && !dayExhausted {
		m.charge(now)
		return m.admission(p)
	}

	// The window that resets later is the one that refuses.
	refusedByDay := dayExhausted
	if minuteExhausted && dayExhausted {
		refusedByDay = m.dayEnd > m.minuteEnd
	}
	var isStrike bool
	if refusedByDay {
		isStrike = m.dayFirstRefusal > 0 && now-m.dayFirstRefusal > 1*second
		if m.dayFirstRefusal == 0 {
			m.dayFirstRefusal = now
		}
	} else {
		isStrike = m.minuteFirstRefusal > 0 && now-m.minuteFirstRefusal > 1*second
		if m.minuteFirstRefusal == 0 {
			m.minuteFirstRefusal = now
		}
	}
	if isStrike && m.strike(now, p) {
		a := refusal(now, "key_banned", p.perMinute, m.banEnd)
		a.bannedNow = true
		return a
	}
	if refusedByDay {
		return refusal(now, "daily_quota_exceeded", p.perDay, m.dayEnd)
	}
	return refusal(now, "rate_limit_exceeded", p.perMinute, m.minuteEnd)
}

// charge counts one request in both windows, after opening new ones for those that
// are over. A window that is over stays as it is until then: if the clock is set
// back into it, it is as full as before.
func (m *model) charge(now int64) {
	if m.minuteOver(now) {
		m.minuteUsed, m.minuteFirstRefusal = 0, 0
		m.minuteEnd = roundUp(now+minute, second)
		m.minutes++
	}
	if m.dayOver(now) {
		m.dayUsed, m.dayFirstRefusal = 0, 0
		m.dayEnd = midnightAfter(now)
		m.days++
	}
	m.minuteUsed++
	m.dayUsed++
}

// admission is the decision for a request that was just charged.
func (m *model) admission(p plan) expected {
	minuteLeft := p.perMinute - m.minuteUsed
	dayLeft := p.perDay - m.dayUsed
	showDay := dayLeft < minuteLeft
	if minuteLeft == 0 && dayLeft == 0 {
		showDay = m.dayEnd > m.minuteEnd
	}
	if showDay {
		return expected{allowed: true, limit: p.perDay, remaining: dayLeft, reset: m.dayEnd / second}
	}
	return expected{allowed: true, limit: p.perMinute, remaining: minuteLeft, reset: m.minuteEnd / second}
}

// strike counts a strike and reports whether it caused a ban.
func (m *model) strike(now int64, p plan) bool {
	if m.strikes == 0 {
		m.firstStrike = now
	}
	m.strikes++
	if m.strikes < p.threshold() {
		return false
	}
	m.strikes = 0
	if m.bansInARow < 4 {
		m.bansInARow++
	}
	m.banStart = max(now, m.banStart+1, p.unbannedAt+1)
	switch m.bansInARow {
	case 1:
		m.banEnd = roundUp(now+5*minute, second)
	case 2:
		m.banEnd = roundUp(now+15*minute, second)
	case 3:
		m.banEnd = roundUp(now+1*hour, second)
	case 4:
		m.banEnd = roundUp(now+24*hour, second)
	}
	return true
}

// standing returns the key's status. A window that is over is full and ends when it
// would if it started now. The only changes it makes are to follow the clock and to
// apply an unban.
func (m *model) standing(now int64, p plan) standing {
	m.shorten(now)
	m.lift(p)
	return m.look(now, p)
}

func (m model) look(now int64, p plan) standing {
	m.pass(now)
	st := standing{
		minuteLeft: p.perMinute, minuteReset: roundUp(now+minute, second),
		dayLeft: p.perDay, dayReset: midnightAfter(now),
		strikes: m.strikes, threshold: p.threshold(), bannedAt: m.banStart, level: m.bansInARow,
	}
	if !m.minuteOver(now) {
		st.minuteLeft, st.minuteReset = atLeastZero(p.perMinute-m.minuteUsed), m.minuteEnd
	}
	if !m.dayOver(now) {
		st.dayLeft, st.dayReset = atLeastZero(p.perDay-m.dayUsed), m.dayEnd
	}
	if m.banned(now, p) {
		st.bannedUntil = m.banEnd
	}
	return st
}

func refusal(now int64, code string, limit, until int64) expected {
	wait := roundUp(until-now, second) / second
	if wait < 1 {
		wait = 1
	}
	return expected{code: code, limit: limit, reset: until / second, retryAfter: wait}
}

func midnightAfter(now int64) int64 { return (now/day + 1) * day }

// roundUp is the smallest multiple of unit that isn't below n.
func roundUp(n, unit int64) int64 {
	if n%unit == 0 {
		return n
	}
	return (n/unit + 1) * unit
}

func atLeastZero(n int64) int64 {
	if n < 0 {
		return 0
	}
	return n
}
