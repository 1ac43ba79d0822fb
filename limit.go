package animalstore

// LimitState is what is remembered of a key's requests, so that limits and bans
// survive a restart. The zero value is a key that was never used. Times are Unix
// milliseconds; 0 means never.
type LimitState struct {
	Minute, Day Window

	Strikes      int64 // since StrikesSince
	StrikesSince int64
	BannedAt     int64 // when the last ban began
	BannedUntil  int64
	BanLevel     int64 // bans in a row, which makes the next one longer
}

// Window is a span of time and the requests charged to it.
type Window struct {
	Used    int64
	End     int64
	Refused int64 // when the window first refused a request
}

// KeyLimitState is the LimitState of one key.
type KeyLimitState struct {
	KeyID int64
	LimitState
}
