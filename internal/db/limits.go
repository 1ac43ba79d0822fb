package db

import (
	"context"

	"animalstore"
)

// Limits stores the usage and the limit states of keys.
type Limits interface {
	// SaveUsage adds to the stored usage of keys and updates when each was last used,
	// for all of them or none.
	SaveUsage(ctx context.Context, usage []KeyUsage) error

	// Usage returns a key's usage per hour since a time, newest first, without hours
	// that had no requests. A key that doesn't exist has no usage.
	Usage(ctx context.Context, keyID int64, since animalstore.Time) ([]animalstore.Usage, error)

	// DropUsage removes at most max hours of usage before a time and returns how
	// many it removed.
	DropUsage(ctx context.Context, before animalstore.Time, max int) (dropped int, err error)

	// LimitState returns the last saved state of a key's limits, or the zero value if
	// there is none.
	LimitState(ctx context.Context, keyID int64) (LimitState, error)

	// SaveLimitStates replaces the saved limits of keys, each of them once, for all or none.
	// Servers that share keys each save what they know, and the last to save may know
	// the least. So a state is skipped if the saved one is ahead of it, comparing
	// BannedAt, then Day.End, then Day.Used. With DayShortened, only BannedAt is
	// compared. A new ban that wasn't lifted before it was saved adds a key.banned
	// event.
	SaveLimitStates(ctx context.Context, states []KeyLimitState) error
}

// KeyUsage is usage to add to that of a key.
type KeyUsage struct {
	KeyID             int64
	Hour              animalstore.Time // when it begins
	Admitted, Refused int64
	LastUsed          animalstore.Time
}

// LimitState is the stored state of a key's limits, so that limits and bans
// survive a restart. The zero value is for a key that was never used. Times are
// Unix milliseconds; 0 means never.
type LimitState struct {
	Minute, Day Window

	Strikes      int64 // since StrikesSince
	StrikesSince int64
	BannedAt     int64 // when the last ban began; later if the clock was set back, so that it only grows
	BannedUntil  int64
	BanLevel     int64 // number of consecutive bans; each makes the next one longer
}

// Window is a time window and the requests charged to it.
type Window struct {
	Used    int64
	End     int64
	Refused int64 // when the window first refused a request; 0 if it hasn't
}

// KeyLimitState is the LimitState of one key.
type KeyLimitState struct {
	KeyID int64
	LimitState

	// DayShortened says that the day was shortened since the state was last saved,
	// because the clock was set back. The state may then have a day that ends earlier
	// or has a lower count than the saved one, and still be newer.
	DayShortened bool
}

// LimitColumns are the columns of a saved limit state, in the order of [LimitFields].
const LimitColumns = "minute_used, minute_end, minute_refused, day_used, day_end, day_refused, strikes, strikes_since, banned_at, banned_until, ban_level"

// LimitFields returns the fields of s in the order of [LimitColumns]. Redis stores them in
// this order too.
func LimitFields(s *LimitState) [11]*int64 {
	return [...]*int64{
		&s.Minute.Used, &s.Minute.End, &s.Minute.Refused,
		&s.Day.Used, &s.Day.End, &s.Day.Refused,
		&s.Strikes, &s.StrikesSince,
		&s.BannedAt, &s.BannedUntil, &s.BanLevel,
	}
}

// ScanLimitState scans [LimitColumns].
func ScanLimitState(row Row) (LimitState, error) {
	var s LimitState
	var into []any
	for _, field := range LimitFields(&s) {
		into = append(into, field)
	}
	err := row.Scan(into...)
	return s, err
}

// ScanUsage scans an hour of usage, and the admitted and refused requests in it.
func ScanUsage(row Row) (animalstore.Usage, error) {
	var u animalstore.Usage
	var hour int64
	err := row.Scan(&hour, &u.Admitted, &u.Refused)
	u.Hour = animalstore.AtMilli(hour)
	return u, err
}
