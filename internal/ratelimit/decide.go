package ratelimit

import (
	"time"

	"animalstore"
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

// decide decides one request at now (Unix milliseconds) and charges it if it is
// admitted. It implements all rules and depends on nothing else.
//
// A window or ban applies until now reaches its end, even if now is before its
// start. So a clock that is set back lengthens it by that step and doesn't open a
// second one. For the same reason a window that is over stays until a charge opens
// the next.
func decide(s *animalstore.LimitState, now int64, limits animalstore.Limits) Decision {
	expireStrikes(s, now)
	if now < s.BannedUntil {
		return refusal(animalstore.KeyBanned, limits.PerMinute, s.BannedUntil, now)
	}
	if w, code := bindingWindow(s, now, limits); w.left <= 0 {
		if addStrike(s, w.window, now, limits) {
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

// openWindows replaces the windows that are over at now with new ones.
func openWindows(s *animalstore.LimitState, now int64) {
	if now >= s.Minute.End {
		s.Minute = animalstore.Window{End: ceilSecond(now + time.Minute.Milliseconds())}
	}
	if now >= s.Day.End {
		s.Day = animalstore.Window{End: nextMidnight(now)}
	}
}

// expireStrikes clears the strikes and the ban level if they have expired at now.
func expireStrikes(s *animalstore.LimitState, now int64) {
	if now >= s.StrikesSince+strikeWindow.Milliseconds() {
		s.Strikes, s.StrikesSince = 0, 0
	}
	if now >= s.BannedUntil+levelMemory.Milliseconds() {
		s.BanLevel = 0
	}
}

// budget is the rest of one window.
type budget struct {
	window      *animalstore.Window
	limit, left int64
}

// bindingWindow returns the window that limits the caller: the minute, unless the
// day has fewer requests left. If neither has any, it is the one that resets later.
func bindingWindow(s *animalstore.LimitState, now int64, limits animalstore.Limits) (budget, animalstore.Code) {
	minute := budget{&s.Minute, limits.PerMinute, remaining(s.Minute, now, limits.PerMinute)}
	day := budget{&s.Day, limits.PerDay, remaining(s.Day, now, limits.PerDay)}
	if day.left < minute.left || day.left == 0 && minute.left == 0 && s.Day.End > s.Minute.End {
		return day, animalstore.DailyQuotaExceeded
	}
	return minute, animalstore.RateLimitExceeded
}

// remaining is the number of requests that w still admits; all of them if it is
// over at now.
func remaining(w animalstore.Window, now, limit int64) int64 {
	if now >= w.End {
		return limit
	}
	return max(0, limit-w.Used)
}

// addStrike records a refusal by w and reports whether it caused a ban.
func addStrike(s *animalstore.LimitState, w *animalstore.Window, now int64, limits animalstore.Limits) bool {
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
	if s.Strikes < threshold(limits) {
		return false
	}
	span := banSpans[min(int(s.BanLevel), len(banSpans)-1)]
	s.BanLevel = min(s.BanLevel+1, int64(len(banSpans)))
	// Never before the previous ban, even if that was lifted and the clock set back:
	// of two states, the one with the later ban is the newer one.
	s.BannedAt = max(s.BannedAt, now)
	s.BannedUntil = ceilSecond(now + span.Milliseconds())
	s.Strikes, s.StrikesSince = 0, 0
	return true
}

// liftBan ends a ban that began before the operator lifted it, as if it had expired
// then. The end is a whole second, like every other end, so that Reset can express
// it.
func liftBan(s *animalstore.LimitState, unbannedAt int64) (lifted bool) {
	if unbannedAt < s.BannedAt || s.BannedUntil <= unbannedAt {
		return false
	}
	s.BannedUntil = unbannedAt / 1000 * 1000
	return true
}

func refusal(code animalstore.Code, limit, end, now int64) Decision {
	return Decision{Code: code, Limit: limit, Reset: end / 1000, RetryAfter: max(1, (end-now+999)/1000)}
}

func ceilSecond(ms int64) int64 { return (ms + 999) / 1000 * 1000 }

func nextMidnight(ms int64) int64 {
	const day = 24 * 60 * 60 * 1000
	return (ms/day + 1) * day
}
