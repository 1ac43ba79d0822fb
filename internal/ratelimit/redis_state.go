package ratelimit

import (
	"fmt"
	"strconv"
	"strings"

	"animalstore"
	"animalstore/internal/db"
)

// outcome is what the script decided.
type outcome string

const (
	outcomeUnknown  outcome = "unknown" // Redis has no state of the key, and none was sent
	outcomeRead     outcome = "read"    // no request was decided
	outcomeAdmitted outcome = "admitted"
	outcomeMinute   outcome = "minute" // refused by the minute
	outcomeDay      outcome = "day"
	outcomeBanned   outcome = "banned"
	outcomeBans     outcome = "bans" // this request caused the ban
)

// reply is the script's reply: the outcome, the time and the key's state afterwards.
type reply struct {
	outcome outcome
	now     int64
	state   db.LimitState
}

// unknown reports whether Redis decided nothing because it has no state of the key.
func (r *reply) unknown() bool { return r.outcome == outcomeUnknown }

// stateText is s as Redis stores it: its fields in the order of [db.LimitFields].
func stateText(s db.LimitState) string {
	text := make([]byte, 0, 128)
	for i, field := range db.LimitFields(&s) {
		if i > 0 {
			text = append(text, ' ')
		}
		text = strconv.AppendInt(text, *field, 10)
	}
	return string(text)
}

// parseReply parses the script's reply.
func parseReply(text string) (reply, error) {
	word, rest, _ := strings.Cut(text, " ")
	r := reply{outcome: outcome(word)}
	if r.unknown() {
		return r, nil
	}
	fields := db.LimitFields(&r.state)
	for i := -1; i < len(fields); i++ {
		field := &r.now
		if i >= 0 {
			field = fields[i]
		}
		var digits string
		digits, rest, _ = strings.Cut(rest, " ")
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			return reply{}, fmt.Errorf("parse the script's reply %.200q: %w", text, err)
		}
		*field = n
	}
	return r, nil
}

// decision returns the result of a request. The script decided it; the header values are
// computed here, where every limit is exact.
func (r *reply) decision(limits animalstore.Limits) (Decision, error) {
	s := &r.state
	switch r.outcome {
	case outcomeAdmitted:
		w, _ := bindingWindow(s, r.now, limits)
		return Decision{Allowed: true, Limit: w.limit, Remaining: w.left, Reset: w.window.End / 1000}, nil
	case outcomeMinute:
		return refusal(animalstore.RateLimitExceeded, limits.PerMinute, s.Minute.End, r.now), nil
	case outcomeDay:
		return refusal(animalstore.DailyQuotaExceeded, limits.PerDay, s.Day.End, r.now), nil
	case outcomeBanned, outcomeBans:
		d := refusal(animalstore.KeyBanned, limits.PerMinute, s.BannedUntil, r.now)
		d.BannedNow = r.outcome == outcomeBans
		return d, nil
	}
	return Decision{}, fmt.Errorf("the script replied %q to a request", r.outcome)
}

// mergeStates adds to s what only o knows. If s is a later state of the same
// history, it stays as it is, because a window's end and count and the start of a
// ban only ever grow. If the two diverged, s gets the later window, the higher
// count in the same window, and the later ban.
func mergeStates(s *db.LimitState, o db.LimitState) {
	mergeWindow(&s.Minute, o.Minute)
	mergeWindow(&s.Day, o.Day)
	switch {
	case o.BannedAt > s.BannedAt:
		s.BannedAt, s.BannedUntil, s.BanLevel = o.BannedAt, o.BannedUntil, o.BanLevel
		s.Strikes, s.StrikesSince = o.Strikes, o.StrikesSince
	case o.BannedAt == s.BannedAt:
		s.BannedUntil = min(s.BannedUntil, o.BannedUntil) // it was lifted
	}
}

func mergeWindow(w *db.Window, o db.Window) {
	switch {
	case o.End > w.End:
		*w = o
	case o.End == w.End:
		w.Used = max(w.Used, o.Used)
		if w.Refused == 0 {
			w.Refused = o.Refused
		}
	}
}

// stillMatters reports whether anything in s still applies at now. Redis drops a
// state when nothing does.
func stillMatters(s *db.LimitState, now int64) bool {
	return now < s.Minute.End || now < s.Day.End || now < s.BannedUntil ||
		s.Strikes > 0 && now < s.StrikesSince+strikeWindow.Milliseconds() ||
		s.BanLevel > 0 && now < s.BannedUntil+levelMemory.Milliseconds()
}
