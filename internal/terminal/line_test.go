package terminal

import (
	"fmt"
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
		line := NewLine(&shown, Screen{Terminal: true, Rewrites: true, Width: 80})
		notes := line.Above(&shown)
		wait := NewCountdown(line)
		progress := line.Progress(1234, "pets")
		time.Sleep(time.Second)
		progress.Add(617)
		io.WriteString(notes, "line 3: name must not be empty\n")
		wait.Start(30*time.Second, "This minute's 60 requests are used up", "continuing")
		synctest.Wait()
		io.WriteString(notes, "line 4: name must not be empty\n")
		wait.End()
		time.Sleep(time.Second)
		progress.SetPace("Pacing: the key allows 60 requests a minute")
		progress.SetPace("")
		progress.Clear()
		const half = "[========        ] 617 of 1,234 pets, "
		want := []string{
			"", "[                ] 0 of 1,234 pets",
			half + "617 a second, 1 s left",
			"line 3: name must not be empty\n", half + "617 a second, 1 s left",
			"617 of 1,234 pets. This minute's 60 requests are used up: continuing in 30 s (…",
			"line 4: name must not be empty\n", "617 of 1,234 pets. This minute's 60 requests are used up: continuing in 30 s (…",
			half + "617 a second, 1 s left",
			"617 of 1,234 pets. Pacing: the key allows 60 requests a minute",
			half + "308 a second, 2 s left", "",
		}
		got := strings.Split(strings.ReplaceAll(shown.String(), "\n\r\x1b[K", "\n\x00"), "\r\x1b[K")
		if text := strings.ReplaceAll(strings.Join(got, "|"), "\x00", "|"); text != strings.Join(want, "|") {
			t.Errorf("got\n%s\nwant\n%s", strings.ReplaceAll(text, "|", "\n"), strings.Join(want, "\n"))
		}
	})
}

// TestProgressInLog: without a terminal, progress is printed from time to time, each
// wait once, however many requests are waiting, and the pacing message once.
func TestProgressInLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		line := NewLine(&out, Screen{})
		wait, progress := NewCountdown(line), line.Progress(100, "pets")
		progress.AddDone(40)
		for range 10 {
			time.Sleep(time.Second)
			progress.SetPace("Pacing: the key allows 60 requests a minute")
			progress.Add(1)
		}
		for range 16 {
			wait.Start(30*time.Second, "Used up", "continuing")
		}
		wait.End()
		progress.Clear()
		want := fmt.Sprintln("Pacing: the key allows 60 requests a minute.") +
			"45 of 100 pets, 1 a second\n50 of 100 pets, 1 a second\nUsed up: continuing in 30 s\n"
		if got := out.String(); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	})
}
