package animalstore

import "time"

// Time is an instant as it is stored and shown: UTC, to the millisecond.
// The zero Time means never.
type Time struct{ time.Time }

// At returns t as a Time.
func At(t time.Time) Time { return Time{t.UTC().Truncate(time.Millisecond)} }

// AtMilli returns the Time ms milliseconds after the Unix epoch; 0 means never.
func AtMilli(ms int64) Time {
	if ms == 0 {
		return Time{}
	}
	return Time{time.UnixMilli(ms).UTC()}
}

// Milli is the inverse of [AtMilli].
func (t Time) Milli() int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// String formats t as RFC 3339, always with three decimals.
func (t Time) String() string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func (t Time) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// MarshalJSON writes null for never.
func (t Time) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	return []byte(`"` + t.String() + `"`), nil
}
