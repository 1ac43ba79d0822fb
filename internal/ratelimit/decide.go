package ratelimit

import (
	"time"

	"animalstore"
	"animalstore/internal/db"
)

// The rules for bans. A refused request is a strike if its window has been refusing
// for longer than strikeGrace, so requests already in flight cost nothing.
const (
	strikeGrace  = time.Second
	strikeWindow = 10 * time.Minute
	minThreshold = 100
	levelMemory  = 24 * time.Hour // after the last ban's end
)

// banSpans are the lengths of the first, second, third and every later ban.
var banSpans = [...]time.Duration{5 * time.Minute, 15 * time.Minute, time.Hour, 24 * time.Hour}

// threshold is the number of strikes that cause a ban.
func threshold(l animalstore.Limits) int64 { return max(minThreshold, l.PerMinute) }

// decide decides one request of key at now (Unix milliseconds) and charges it if it
// is admitted. Together with followClock and liftBan, which the caller calls first,
// it implements all rules, and it depends on nothing else.
//
// A window or ban applies until now reaches its end, even if now is before its
// start. So a clock that is set back doesn't open a second one. For the same reason
// a window that is over stays until a charge opens the next.
func decide(s *db.LimitState, now int64, key *animalstore.Key) Decision {
	limits := key.Limits
	expireStrikes(s, now)
	if banned(s, now, key) {
		return refusal(animalstore.KeyBanned, limits.PerMinute, s.BannedUntil, now)
	}
	if w, code := bindingWindow(s, now, limits); w.left <= 0 {
		if addStrike(s, w.window, now, key) {
			d := refusal(animalstore.KeyBanned, limits.PerMinute, s.BannedUntil, now)
			d.BannedNow = true
			return d
		}
		return refusal(code, w.limit, w.window.End, now)
	}
	openWindows(s, now)
	s.Minute.Used++
	s.Day.Used++
	w, _ := bindingWindow(s, now, limits)
	return Decision{Allowed: true, Limit: w.limit, Remaining: w.left, Reset: w.window.End / 1000}
}

// followClock shortens the windows in s to the longest that could start at now. Longer
// ones started before the clock was set back. They keep their counts, but without this
// a clock that was briefly ahead could refuse a key for as long as it was ahead. It
// reports whether it changed s, and whether it shortened the day.
//
// Bans aren't shortened: an operator can lift them, and a server whose own clock is
// behind must not lift the bans of others.
func followClock(s *db.LimitState, now int64) (changed, dayShortened bool) {
	minuteEnd := ceilSecond(now + time.Minute.Milliseconds())
	dayEnd := floorSecond(now + 24*time.Hour.Milliseconds())
	if s.Minute.End <= minuteEnd && s.Day.End <= dayEnd && s.StrikesSince <= now {
		return false, false
	}
	dayShortened = s.Day.End > dayEnd
	s.Minute.End = min(s.Minute.End, minuteEnd)
	s.Day.End = min(s.Day.End, dayEnd)
	s.StrikesSince = min(s.StrikesSince, now)
	return true, dayShortened
}

// openWindows replaces the windows that are over at now with new ones.
func openWindows(s *db.LimitState, now int64) {
	if now >= s.Minute.End {
		s.Minute = db.Window{End: ceilSecond(now + time.Minute.Milliseconds())}
	}
	if now >= s.Day.End {
		s.Day = db.Window{End: nextMidnight(now)}
	}
}

// expireStrikes clears the strikes and the ban level if they have expired at now.
func expireStrikes(s *db.LimitState, now int64) {
	if now >= s.StrikesSince+strikeWindow.Milliseconds() {
		s.Strikes, s.StrikesSince = 0, 0
	}
	if now >= s.BannedUntil+levelMemory.Milliseconds() {
		s.BanLevel = 0
	}
}

// budget is what is left of one window.
type budget struct {
	window      *db.Window
	limit, left int64
}

// bindingWindow returns the window that limits the caller: the minute, unless the
// day has fewer requests left. If neither has any, it is the one that resets later.
func bindingWindow(s *db.LimitState, now int64, limits animalstore.Limits) (budget, animalstore.Code) {
	minute := budget{&s.Minute, limits.PerMinute, remaining(s.Minute, now, limits.PerMinute)}
	day := budget{&s.Day, limits.PerDay, remaining(s.Day, now, limits.PerDay)}
	if day.left < minute.left || day.left == 0 && minute.left == 0 && s.Day.End > s.Minute.End {
		return day, animalstore.DailyQuotaExceeded
	}
	return minute, animalstore.RateLimitExceeded
}

// remaining is the number of requests that w still admits; all of them if it is
// over at now.
func remaining(w db.Window, now, limit int64) int64 {
	if now >= w.End {
		return limit
	}
	return max(0, limit-w.Used)
}

// banned reports whether the key is banned at now. A lifted ban stays lifted, even
// if the clock is set back to before its end.
func banned(s *db.LimitState, now int64, key *animalstore.Key) bool {
	return now < s.BannedUntil && s.BannedAt > key.UnbannedAt.Milli()
}

// addStrike records a refusal by w and reports whether it caused a ban.
func addStrike(s *db.LimitState, w *db.Window, now int64, key *animalstore.Key) bool {
	if w.Refused == 0 {
		w.Refused = now
	}
	if now-w.Refused <= strikeGrace.Milliseconds() {
		return false
	}
	if s.Strikes == 0 {
		s.StrikesSince = now
	}
	s.Strikes++
	if s.Strikes < threshold(key.Limits) {
		return false
	}
	span := banSpans[min(int(s.BanLevel), len(banSpans)-1)]
	s.BanLevel = min(s.BanLevel+1, int64(len(banSpans)))
	// Always after the previous ban and unban, even if the clock was set back: of two
	// states, the one with the later ban is the newer one, and an unban lifts no ban
	// that comes after it.
	s.BannedAt = max(now, s.BannedAt+1, key.UnbannedAt.Milli()+1)
	s.BannedUntil = ceilSecond(now + span.Milliseconds())
	s.Strikes, s.StrikesSince = 0, 0
	return true
}

// liftBan ends a ban that an operator lifted, as if it had expired then, and reports
// whether it changed s. The end is a whole second, like every other end, so that
// Reset can express it.
func liftBan(s *db.LimitState, key *animalstore.Key) (changed bool) {
	unbannedAt := key.UnbannedAt.Milli()
	if unbannedAt < s.BannedAt || s.BannedUntil <= unbannedAt {
		return false
	}
	s.BannedUntil = floorSecond(unbannedAt)
	return true
}

func refusal(code animalstore.Code, limit, end, now int64) Decision {
	return Decision{Code: code, Limit: limit, Reset: end / 1000, RetryAfter: max(1, (end-now+999)/1000)}
}

func floorSecond(ms int64) int64 { return ms / 1000 * 1000 }

func ceilSecond(ms int64) int64 { return (ms + 999) / 1000 * 1000 }

func nextMidnight(ms int64) int64 {
	const day = 24 * 60 * 60 * 1000
	return (ms/day + 1) * day
}
