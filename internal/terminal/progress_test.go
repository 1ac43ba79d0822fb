package terminal

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestLine: progress, waits and messages never mix, and the line is gone at the end.
func TestLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var shown strings.Builder
		line := &Line{w: &shown, screen: Screen{Terminal: true, Rewrites: true, Width: 60}}
		progress := line.Progress(1234, "pets")
		time.Sleep(time.Second)
		progress.Add(617)
		io.WriteString(line.Above(&shown), "line 3: no name\n")
		line.Wait(2*time.Second, "Limit of 60 requests per minute reached")
		time.Sleep(1500 * time.Millisecond)
		progress.Add(617)
		line.Wait(900*time.Millisecond, "too short to read")
		progress.Clear()
		const half = "|617 of 1,234 pets, 617 a second, 1 s left"
		const want = "|0 of 1,234 pets" + half + "|line 3: no name\n" + half +
			"|Limit of 60 requests per minute reached: retrying in 2 s (…|1,234 of 1,234 pets, 493 a second|"
		if got := strings.ReplaceAll(shown.String(), "\r\x1b[K", "|"); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	})
}

// TestLineInLog: without a terminal, each wait is printed once, however many requests are
// waiting.
func TestLineInLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		line := NewLine(&out)
		progress := line.Progress(100, "pets")
		progress.Skip(40)
		for range 16 {
			line.Wait(30*time.Second, "Limit reached")
		}
		progress.Clear()
		if got, want := out.String(), "Limit reached: retrying in 30 s\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
