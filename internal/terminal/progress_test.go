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
		line := NewLine(&shown, Screen{Terminal: true, Rewrites: true, Width: 60})
		notes := line.Above(&shown)
		progress := line.Progress(1234, "pets")
		time.Sleep(time.Second)
		progress.Add(617)
		io.WriteString(notes, "line 3: name must not be empty\n")
		line.Wait(2*time.Second, "Limit of 60 requests per minute reached")
		time.Sleep(1500 * time.Millisecond)
		line.EndWait()
		progress.Add(617)
		line.Wait(900*time.Millisecond, "too short to read")
		progress.Clear()
		const half = "617 of 1,234 pets, 617 a second, 1 s left"
		want := []string{
			"", "0 of 1,234 pets", half, "", "line 3: name must not be empty\n", half,
			"Limit of 60 requests per minute reached: retrying in 2 s (…",
			"Limit of 60 requests per minute reached: retrying in 1 s (…",
			"", "1,234 of 1,234 pets, 493 a second", "",
		}
		got := strings.ReplaceAll(strings.ReplaceAll(shown.String(), "\r\x1b[Kline", "||line"), "\r\x1b[K", "|")
		if got != strings.Join(want, "|") {
			t.Errorf("got\n%s\nwant\n%s", strings.ReplaceAll(got, "|", "\n"), strings.Join(want, "\n"))
		}
	})
}

// TestLineInLog: without a terminal, progress is printed from time to time, and each wait
// once, however many requests are waiting.
func TestLineInLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		line := NewLine(&out, Screen{})
		progress := line.Progress(100, "pets")
		progress.Skip(40)
		for range 10 {
			time.Sleep(time.Second)
			progress.Add(1)
		}
		for range 16 {
			line.Wait(30*time.Second, "Limit reached")
		}
		line.EndWait()
		progress.Clear()
		stop := ShowElapsed(&out, "checking")
		time.Sleep(2*logEvery + time.Second)
		stop()
		const want = "45 of 100 pets, 1 a second, 55 s left\n50 of 100 pets, 1 a second, 50 s left\n" +
			"Limit reached: retrying in 30 s\nchecking (5 s)\nchecking (10 s)\n"
		if got := out.String(); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	})
}
