// Package ratelimit decides whether a key may make one more request, and counts
// what became of its requests.
//
// decide.go has the rules; memory.go applies them to counters in this process;
// redis.go and take.lua to counters that several share, and redis_apart.go to the
// times when those are out of reach; usage.go keeps the hourly count.
package ratelimit

import (
	"context"
	"time"

	"animalstore"
)

// Limiter keeps count of every key's requests. All methods may be called at
// once from any goroutine.
type Limiter interface {
	// Take decides on one request of key and, if it is admitted, charges it to
	// the minute and the day together. The error is the store's, when what it
	// remembers of the key cannot be read.
	Take(ctx context.Context, key *animalstore.Key) (Decision, error)

	// Status tells how the key stands, without charging anything.
	Status(ctx context.Context, key *animalstore.Key) (Status, error)
}

// Decision is the answer to one request, as its headers tell it.
type Decision struct {
	Allowed    bool
	Code       animalstore.Code // why not, if not
	Limit      int64
	Remaining  int64
	Reset      int64 // Unix seconds
	RetryAfter int64 // seconds, at least 1; 0 if allowed
	BannedNow  bool  // this request brought a ban
}

// Status is how a key stands.
type Status struct {
	Minute, Day WindowStatus
	Strikes     int64
	Threshold   int64 // the strikes that bring a ban
	BannedUntil animalstore.Time
	BanLevel    int64
}

// WindowStatus is how one window stands. One that has not begun is whole, and
// resets as it would if it began now.
type WindowStatus struct {
	Limit, Remaining int64
	Reset            animalstore.Time
}

// Store is where limits survive a restart.
type Store interface {
	// LimitState returns what was saved of a key last, or the zero value.
	LimitState(ctx context.Context, keyID int64) (animalstore.LimitState, error)
	// SaveLimitStates saves all of them or none.
	SaveLimitStates(ctx context.Context, states []animalstore.KeyLimitState) error
}

// StatusOf tells how a key stands by what is saved of it, which may be a second
// old.
func StatusOf(s animalstore.LimitState, key *animalstore.Key, now time.Time) Status {
	lift(&s, key.UnbannedAt.Milli())
	return status(s, now.UnixMilli(), key.Limits)
}

// status is how s stands at now.
func status(s animalstore.LimitState, now int64, limits animalstore.Limits) Status {
	roll(&s, now)
	open(&s, now)
	st := Status{
		Minute:    WindowStatus{limits.PerMinute, max(0, limits.PerMinute-s.Minute.Used), animalstore.AtMilli(s.Minute.End)},
		Day:       WindowStatus{limits.PerDay, max(0, limits.PerDay-s.Day.Used), animalstore.AtMilli(s.Day.End)},
		Strikes:   s.Strikes,
		Threshold: threshold(limits),
		BanLevel:  s.BanLevel,
	}
	if now < s.BannedUntil {
		st.BannedUntil = animalstore.AtMilli(s.BannedUntil)
	}
	return st
}
