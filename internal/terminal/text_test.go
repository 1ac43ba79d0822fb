package terminal

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestTimes(t *testing.T) {
	now := time.Date(2026, 2, 3, 4, 5, 6, 7e6, time.UTC)
	for _, test := range []struct{ got, want string }{
		{relativeTime(time.Time{}, now), "never"},
		{relativeTime(now, now), "0 s ago"},
		{relativeTime(now.Add(-59*time.Second), now), "59 s ago"},
		{relativeTime(now.Add(-time.Minute), now), "1 min ago"},
		{relativeTime(now.Add(-47*time.Hour), now), "47 h ago"},
		{relativeTime(now.Add(-72*time.Hour), now), "3 d ago"},
		{relativeTime(now.Add(90*time.Minute), now), "in 1 h"},
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

func TestWrap(t *testing.T) {
	for _, test := range []struct {
		text  string
		width int
		want  string
	}{
		{"one two three", 0, "one two three"},
		{"one two three", 7, "one two\nthree"},
		{"one two three", 6, "one\ntwo\nthree"},
		{"one two three", 13, "one two three"},
		{"longer-than-the-screen it", 5, "longer-than-the-screen\nit"},
	} {
		if got := Wrap(test.text, test.width); got != test.want {
			t.Errorf("%q on %d columns: got %q, want %q", test.text, test.width, got, test.want)
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

// TestProgressLines: without a terminal, a line is printed from time to time.
func TestProgressLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		p := NewProgress(&out, 3000, "pets")
		p.Add(1000)
		if out.String() != "" {
			t.Errorf("got %q at once, want nothing", out.String())
		}
		time.Sleep(2 * logEvery)
		p.Add(500)
		p.Add(500)
		if got, want := out.String(), "1,500 of 3,000 pets, 150 a second\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		p.Clear()
		if p.Done() != 2000 || p.Rate() != 200 {
			t.Errorf("got %d done, %d a second, want 2000 and 200", p.Done(), p.Rate())
		}
	})
}

func TestElapsedLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		stop := ShowElapsed(&out, "checking")
		time.Sleep(2*logEvery + time.Second)
		stop()
		if got, want := out.String(), "checking (5 s)\nchecking (10 s)\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// TestCountdownEnds: when a program prints during a wait, the countdown's line
// disappears and doesn't come back.
func TestCountdownEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var shown strings.Builder
		c := NewCountdown(NewLine(&shown, Screen{Terminal: true, Rewrites: true}))
		c.Start(time.Hour, "Broken", "trying again")
		time.Sleep(1500 * time.Millisecond)
		io.WriteString(c.Before(&shown), "a row\n")
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		want := "\r\x1b[KBroken: trying again in 1 h 0 min (Ctrl-C stops)" +
			"\r\x1b[KBroken: trying again in 59 min 59 s (Ctrl-C stops)" +
			"\r\x1b[Ka row\n"
		if got := shown.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		// Of two waits, the later one is shown.
		shown.Reset()
		c.Start(time.Hour, "Broken", "trying again")
		synctest.Wait()
		c.Start(time.Second, "Broken", "trying again")
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		want = "\r\x1b[KBroken: trying again in 1 h 0 min (Ctrl-C stops)" +
			"\r\x1b[K\r\x1b[KBroken: trying again in 1 s (Ctrl-C stops)\r\x1b[K"
		if got := shown.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		c.Start(900*time.Millisecond, "Broken", "trying again")
		if got := shown.String(); got != want {
			t.Errorf("a wait of less than a second: got %q, want nothing more", strings.TrimPrefix(got, want))
		}
	})
}

// TestCountdownInLog: without a terminal there is one line per wait.
func TestCountdownInLog(t *testing.T) {
	var out strings.Builder
	c := NewCountdown(NewLine(&out, Screen{}))
	c.Start(90*time.Second, "Broken", "trying again")
	c.End()
	if got, want := out.String(), "Broken: trying again in 1 min 30 s\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{"0B": 0, "17B": 17, "3KiB": 3 << 10, "500MiB": 500 << 20, "10GiB": 10 << 30, "2TiB": 2 << 40} {
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("ParseSize(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "10", "MiB", "-1B", "1.5GiB", "1 GiB", "10GB", "9999999TiB", "1gib"} {
		if got, err := ParseSize(text); err == nil {
			t.Errorf("ParseSize(%q) = %d, want an error", text, got)
		}
	}
}
