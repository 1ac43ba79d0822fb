package terminal

import (
	"testing"
	"time"
)

func TestTimes(t *testing.T) {
	now := time.Date(2026, 2, 3, 4, 5, 6, 7e6, time.UTC)
	for _, test := range []struct{ got, want string }{
		{relativeTime(now, now), "0 s ago"},
		{relativeTime(now.Add(-59*time.Second), now), "59 s ago"},
		{relativeTime(now.Add(-time.Minute), now), "1 min 0 s ago"},
		{relativeTime(now.Add(-47*time.Hour), now), "47 h 0 min ago"},
		{relativeTime(now.Add(-72*time.Hour), now), "3 d ago"},
		{relativeTime(now.Add(90*time.Minute), now), "in 1 h 30 min"},
		{DateTime(now), "2026-02-03 04:05:06"},
		{DateTime(time.Time{}), "never"},
		{Duration(1), "1 s"},
		{Duration(59 * time.Second), "59 s"},
		{Duration(60 * time.Second), "1 min 0 s"},
		{Duration(59*time.Minute + 59*time.Second + 1), "1 h 0 min"},
		{Duration(25*time.Hour + 30*time.Minute), "25 h 30 min"},
	} {
		if test.got != test.want {
			t.Errorf("got %q, want %q", test.got, test.want)
		}
	}
}

func TestVisible(t *testing.T) {
	for _, test := range []struct{ text, want, json string }{
		{"Rex", "Rex", "Rex"},
		{"柴犬 é 👩‍🚀", "柴犬 é 👩‍🚀", "柴犬 é 👩‍🚀"},
		{"a\x1b[31mb", `a\x1b[31mb`, "a\x1b[31mb"}, // the encoder escapes that
		{"tab\tline\nback\rslash\\", `tab\tline\nback\rslash\\`, "tab\tline\nback\rslash\\"},
		{"\x7f\u0085\u009b", `\x7f\u0085\u009b`, `\u007f\u0085\u009b`},
		{"\u2028\u2029\u202e\u2066\ufeff\u00ad", `\u2028\u2029\u202e\u2066\ufeff\u00ad`, `\u2028\u2029\u202e\u2066\ufeff\u00ad`},
		{"\U000e0041", `\U000e0041`, `\udb40\udc41`},
	} {
		if got := Visible(test.text); got != test.want {
			t.Errorf("%q: got %s, want %s", test.text, got, test.want)
		}
		if got := string(escapeJSON([]byte(test.text))); got != test.json {
			t.Errorf("%q in JSON: got %s, want %s", test.text, got, test.json)
		}
	}
}

func TestGrouped(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 7: "7", 999: "999", 1000: "1,000", 12345: "12,345", 999_999: "999,999", 1_000_000_000: "1,000,000,000"} {
		if got := Grouped(n); got != want {
			t.Errorf("%d: got %s, want %s", n, got, want)
		}
	}
	if one, many := Count(1, "pet", "pets"), Count(1000, "pet", "pets"); one != "1 pet" || many != "1,000 pets" {
		t.Errorf("got %q and %q, want 1 pet and 1,000 pets", one, many)
	}
}
