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

// timeLength is that of a formatted Time, in the years that have four digits.
const timeLength = len("2006-01-02T15:04:05.000Z")

// String formats t as RFC 3339, always with three decimals.
func (t Time) String() string { return string(t.Append(make([]byte, 0, timeLength))) }

// Append appends t as String formats it. Events have one each, and time.Time.AppendFormat
// is fast only for RFC 3339 without a fixed number of decimals.
func (t Time) Append(b []byte) []byte {
	utc := t.UTC()
	year, month, day := utc.Date()
	if year < 0 || year > 9999 {
		return utc.AppendFormat(b, "2006-01-02T15:04:05.000Z")
	}
	hour, minute, second := utc.Clock()
	b = append(appendDigits(b, year, 4), '-')
	b = append(appendDigits(b, int(month), 2), '-')
	b = append(appendDigits(b, day, 2), 'T')
	b = append(appendDigits(b, hour, 2), ':')
	b = append(appendDigits(b, minute, 2), ':')
	b = append(appendDigits(b, second, 2), '.')
	return append(appendDigits(b, utc.Nanosecond()/int(time.Millisecond), 3), 'Z')
}

// appendDigits appends n in this many decimal digits.
func appendDigits(b []byte, n, digits int) []byte {
	start := len(b)
	for range digits {
		b = append(b, '0')
	}
	for i := start + digits - 1; i >= start; i-- {
		b[i] += byte(n % 10)
		n /= 10
	}
	return b
}

func (t Time) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// MarshalJSON writes null for never.
func (t Time) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	return []byte(`"` + t.String() + `"`), nil
}
