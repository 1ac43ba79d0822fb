package animalstore

import (
	"encoding/json"
	"testing"
	"time"
)

func TestTimeString(t *testing.T) {
	east := time.FixedZone("", 3*3600)
	for _, test := range []struct {
		in   time.Time
		want string
	}{
		{time.Date(2026, 11, 15, 9, 24, 5, 120_000_000, time.UTC), "2026-11-15T09:24:05.120Z"},
		{time.Date(2026, 11, 15, 9, 24, 5, 0, time.UTC), "2026-11-15T09:24:05.000Z"},
		{time.Date(2026, 11, 15, 9, 24, 5, 1_999_999, time.UTC), "2026-11-15T09:24:05.001Z"}, // truncated, not rounded
		{time.Date(2026, 11, 15, 23, 59, 59, 999_999_999, time.UTC), "2026-11-15T23:59:59.999Z"},
		{time.Date(2026, 1, 1, 2, 0, 0, 0, east), "2025-12-31T23:00:00.000Z"},
		{time.Date(1969, 12, 31, 23, 59, 59, 999_500_000, time.UTC), "1969-12-31T23:59:59.999Z"},
	} {
		got := At(test.in)
		if got.String() != test.want {
			t.Errorf("%v: got %s, want %s", test.in, got, test.want)
		}
		if text, err := got.MarshalText(); err != nil || string(text) != test.want {
			t.Errorf("%v as text: got %s (%v), want %s", test.in, text, err, test.want)
		}
		encoded, err := json.Marshal(got)
		if err != nil || string(encoded) != `"`+test.want+`"` {
			t.Errorf("%v as JSON: got %s (%v), want %q", test.in, encoded, err, test.want)
		}
		var back Time
		if err := json.Unmarshal(encoded, &back); err != nil || !back.Equal(got.Time) {
			t.Errorf("%s read back: got %v (%v), want the same", encoded, back, err)
		}
		if back := AtMilli(got.Milli()); back.String() != test.want {
			t.Errorf("%v by milliseconds: got %s, want %s", test.in, back, test.want)
		}
	}
}

// TestNever: zero means never, in the store and in JSON.
func TestNever(t *testing.T) {
	if never := AtMilli(0); !never.IsZero() || never.Milli() != 0 {
		t.Errorf("got %v, want never", never)
	}
	got, err := json.Marshal(Key{CreatedAt: AtMilli(1), Permissions: Read})
	const want = `{"id":0,"name":"","plan":"","limits":{"perMinute":0,"perDay":0},"permissions":["read"],"networks":[],"environment":"","createdAt":"1970-01-01T00:00:00.001Z","expiresAt":null,"lastUsedAt":null,"revokedAt":null,"suspendedAt":null,"ban":null}`
	if err != nil || string(got) != want {
		t.Errorf("got %s (%v), want %s", got, err, want)
	}
}
