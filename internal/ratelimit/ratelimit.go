// Package ratelimit decides whether a key may make another request, and counts
// admitted and refused requests.
//
// decide.go has the rules. memory.go applies them to counters in this process,
// redis.go and take.lua to counters that several servers share; redis_fallback.go
// takes over while Redis doesn't respond. usage.go counts requests by the hour.
package ratelimit

import (
	"context"
	"time"

	"animalstore"
	"animalstore/internal/db"
)

// Limiter counts every key's requests. Its methods may be called concurrently.
type Limiter interface {
	// Take decides one request of key and, if it is admitted, charges it to both
	// the minute and the day. It returns the store's error if the key's state
	// can't be read.
	Take(ctx context.Context, key *animalstore.Key) (Decision, error)

	// Status returns the key's status without charging anything.
	Status(ctx context.Context, key *animalstore.Key) (Status, error)
}

// Decision is the result for one request, as the response's headers report it.
type Decision struct {
	Allowed    bool
	Code       animalstore.Code // the reason for a refusal
	Limit      int64
	Remaining  int64
	Reset      int64 // Unix seconds
	RetryAfter int64 // seconds, at least 1; 0 if allowed
	BannedNow  bool  // this request caused a ban
}

// Status is the current state of a key.
type Status struct {
	Minute, Day WindowStatus
	Strikes     int64
	Threshold   int64            // the number of strikes that causes a ban
	BannedAt    animalstore.Time // when the last ban began, even if it is over
	BannedUntil animalstore.Time // zero: not banned
	BanLevel    int64
}

// WindowStatus is the current state of one window. A window that hasn't started is
// full, and its Reset is the one it would have if it started now.
type WindowStatus struct {
	Limit, Remaining int64
	Reset            animalstore.Time
}

// Store is where limits survive a restart.
type Store interface {
	// LimitState returns the last saved state of a key, or the zero value.
	LimitState(ctx context.Context, keyID int64) (db.LimitState, error)
	// SaveLimitStates saves all states or none.
	SaveLimitStates(ctx context.Context, states []db.KeyLimitState) error
}

// StatusOf returns a key's status from its saved state, which may be a second old.
func StatusOf(s db.LimitState, key *animalstore.Key, now time.Time) Status {
	followClock(&s, now.UnixMilli())
	liftBan(&s, key)
	return status(s, now.UnixMilli(), key)
}

// status is the status of a key with state s at now.
func status(s db.LimitState, now int64, key *animalstore.Key) Status {
	limits := key.Limits
	expireStrikes(&s, now)
	openWindows(&s, now)
	st := Status{
		Minute:    WindowStatus{limits.PerMinute, max(0, limits.PerMinute-s.Minute.Used), animalstore.AtMilli(s.Minute.End)},
		Day:       WindowStatus{limits.PerDay, max(0, limits.PerDay-s.Day.Used), animalstore.AtMilli(s.Day.End)},
		Strikes:   s.Strikes,
		Threshold: threshold(limits),
		BannedAt:  animalstore.AtMilli(s.BannedAt),
		BanLevel:  s.BanLevel,
	}
	if banned(&s, now, key) {
		st.BannedUntil = animalstore.AtMilli(s.BannedUntil)
	}
	return st
}
