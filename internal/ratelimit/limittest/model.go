package limittest

// This file is a second reading of the contract, to hold limiters against. It
// knows nothing of package ratelimit, and where it could be short or plain it
// is plain. Instants are Unix milliseconds.

const (
	second = 1000
	minute = 60 * second
	hour   = 60 * minute
	day    = 24 * hour
)

// model is one key as the contract sees it.
type model struct {
	// The minute window; minuteEnd is 0 before the first one.
	minuteUsed         int64
	minuteEnd          int64
	minuteFirstRefusal int64 // 0: it refused nothing yet

	// The day window.
	dayUsed         int64
	dayEnd          int64
	dayFirstRefusal int64

	strikes      int64
	firstStrike  int64
	banStart     int64
	banEnd       int64
	bansInARow   int64
	banWasLifted bool
}

// plan is what the model has to know of a key.
type plan struct {
	perMinute, perDay int64
}

// threshold is the number of strikes that brings a ban.
func (p plan) threshold() int64 {
	if p.perMinute > 100 {
		return p.perMinute
	}
	return 100
}

// answer is what the model expects of one request.
type answer struct {
	allowed    bool
	code       string
	limit      int64
	remaining  int64
	reset      int64
	retryAfter int64
	bannedNow  bool
}

// pass lets time do its work: whatever is over by now goes.
//
// Nothing here ever looks at when something began. So a clock that steps back
// finds every window and ban as it was, and each lasts longer by the step.
func (m *model) pass(now int64) {
	if now >= m.minuteEnd {
		m.minuteUsed, m.minuteEnd, m.minuteFirstRefusal = 0, 0, 0
	}
	if now >= m.dayEnd {
		m.dayUsed, m.dayEnd, m.dayFirstRefusal = 0, 0, 0
	}
	if m.strikes > 0 && now >= m.firstStrike+10*minute {
		m.strikes, m.firstStrike = 0, 0
	}
	if m.bansInARow > 0 && now >= m.banEnd+24*hour {
		m.bansInARow = 0
	}
}

// unban is the operator's.
func (m *model) unban(now int64) {
	if m.banned(now) {
		m.banWasLifted = true
	}
}

func (m *model) banned(now int64) bool { return now < m.banEnd && !m.banWasLifted }

// minuteReset and dayReset are when the window ends, or would if it began now.
func (m *model) minuteReset(now int64) int64 {
	if m.minuteEnd > 0 {
		return m.minuteEnd
	}
	return roundUp(now+minute, second)
}

func (m *model) dayReset(now int64) int64 {
	if m.dayEnd > 0 {
		return m.dayEnd
	}
	return (now/day + 1) * day
}

// take is one request.
func (m *model) take(now int64, p plan) answer {
	m.pass(now)

	if m.banned(now) {
		return refusal(now, "key_banned", p.perMinute, m.banEnd)
	}

	minuteExhausted := m.minuteUsed >= p.perMinute
	dayExhausted := m.dayUsed >= p.perDay
	if !minuteExhausted && !dayExhausted {
		m.charge(now)
		limit, remaining, reset := m.headers(now, p)
		return answer{allowed: true, limit: limit, remaining: remaining, reset: reset}
	}

	// The window that holds the client back longer is the one that refuses.
	refusedByDay := dayExhausted && (!minuteExhausted || m.dayReset(now) > m.minuteReset(now))
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
		return refusal(now, "daily_quota_exceeded", p.perDay, m.dayReset(now))
	}
	return refusal(now, "rate_limit_exceeded", p.perMinute, m.minuteReset(now))
}

// charge counts one request in both windows, and opens those that are not.
func (m *model) charge(now int64) {
	m.minuteEnd = m.minuteReset(now)
	m.dayEnd = m.dayReset(now)
	m.minuteUsed++
	m.dayUsed++
}

// strike counts a strike and reports whether it brought a ban.
func (m *model) strike(now int64, p plan) bool {
	if m.strikes == 0 {
		m.firstStrike = now
	}
	m.strikes++
	if m.strikes < p.threshold() {
		return false
	}
	m.strikes, m.firstStrike = 0, 0
	if m.bansInARow < 4 {
		m.bansInARow++
	}
	m.banStart = now
	m.banWasLifted = false
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

// headers are those of an admitted request.
func (m *model) headers(now int64, p plan) (limit, remaining, reset int64) {
	minuteLeft := p.perMinute - m.minuteUsed
	dayLeft := p.perDay - m.dayUsed
	showDay := dayLeft < minuteLeft
	if minuteLeft == 0 && dayLeft == 0 {
		showDay = m.dayReset(now) > m.minuteReset(now)
	}
	if showDay {
		return p.perDay, dayLeft, m.dayReset(now) / second
	}
	return p.perMinute, minuteLeft, m.minuteReset(now) / second
}

func refusal(now int64, code string, limit, until int64) answer {
	reset := roundUp(until, second) / second
	wait := roundUp(reset*second-now, second) / second
	if wait < 1 {
		wait = 1
	}
	return answer{code: code, limit: limit, reset: reset, retryAfter: wait}
}

// roundUp is the first multiple of unit that is not below n.
func roundUp(n, unit int64) int64 {
	if n%unit == 0 {
		return n
	}
	return (n/unit + 1) * unit
}
