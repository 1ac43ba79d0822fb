package animalstore

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
	// or has a lower count than the saved one, and is newer nevertheless.
	DayShortened bool
}
