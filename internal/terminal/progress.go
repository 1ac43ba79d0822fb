package terminal

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"time"
)

// drawEvery is how often progress is drawn.
const drawEvery = 100 * time.Millisecond

// Line is the line at the bottom of a terminal that says what a command is doing. All
// other output to the terminal must go through [Line.Above], so that the two never mix.
// Without a terminal, such as in a log, only waits are printed.
type Line struct {
	w      io.Writer
	screen Screen

	mu       sync.Mutex
	text     string
	shown    string
	waitEnds time.Time
}

// NewLine returns an empty line.
func NewLine(w io.Writer) *Line { return &Line{w: w, screen: ScreenOf(w)} }

// Show replaces the text. "" removes the line.
func (l *Line) Show(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = text
	l.draw(text)
}

// draw cuts the text to the width of the screen, because a line that wraps can't be
// overwritten.
func (l *Line) draw(text string) {
	if l.screen.Width > 0 {
		text = cut(text, l.screen.Width-1)
	}
	if l.screen.Rewrites && text != l.shown {
		l.shown = text
		fmt.Fprint(l.w, "\r\x1b[K", text)
	}
}

// Above returns a writer to w, which may be the same terminal. It removes the line
// before each write and shows it again below.
func (l *Line) Above(w io.Writer) io.Writer { return aboveLine{w, l} }

type aboveLine struct {
	io.Writer
	line *Line
}

func (a aboveLine) Write(p []byte) (int, error) {
	a.line.mu.Lock()
	defer a.line.mu.Unlock()
	a.line.draw("")
	n, err := a.Writer.Write(p)
	if bytes.HasSuffix(p, []byte("\n")) {
		a.line.draw(a.line.text)
	}
	return n, err
}

// Wait says why a command waits, and for how long, until something else is shown or
// printed. Several requests that wait for the same time are one wait.
func (l *Line) Wait(wait time.Duration, reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	until := time.Now().Add(wait)
	if wait < time.Second || until.Sub(l.waitEnds).Abs() < time.Second {
		return
	}
	l.waitEnds = until
	text := fmt.Sprintf("%s: retrying in %s", reason, Duration(wait))
	if l.screen.Rewrites {
		l.draw(text + " (Ctrl-C stops)")
	} else {
		fmt.Fprintln(l.w, text)
	}
}

// Progress counts what a long command has done, and shows it in a line.
type Progress struct {
	line  *Line
	unit  string
	total int64 // -1: unknown

	done, skipped  int64
	began, drawnAt time.Time
}

// Progress starts at 0 of total units, such as "pets", in the line. A total of -1 means
// unknown.
func (l *Line) Progress(total int64, unit string) *Progress {
	p := &Progress{line: l, unit: unit, total: total, began: time.Now()}
	p.Add(0)
	return p
}

// Add counts n more.
func (p *Progress) Add(n int) {
	p.done += int64(n)
	if now := time.Now(); now.Sub(p.drawnAt) >= drawEvery {
		p.drawnAt = now
		p.line.Show(p.text())
	}
}

// Skip counts n that were done by an earlier run. They don't count towards the rate.
func (p *Progress) Skip(n int64) {
	p.skipped += n
	p.Add(int(n))
}

// text has the most important part first, because a narrow screen cuts off the end.
func (p *Progress) text() string {
	text, rate := Grouped(p.done), p.Rate()
	if p.total >= 0 {
		text += " of " + Grouped(p.total)
	}
	text += " " + p.unit
	if rate == 0 || time.Since(p.began) < time.Second { // too early to tell
		return text
	}
	text += fmt.Sprintf(", %s a second", Grouped(rate))
	if p.total > p.done {
		text += fmt.Sprintf(", %s left", Duration(time.Duration((p.total-p.done)/rate)*time.Second))
	}
	return text
}

// Done returns the count so far.
func (p *Progress) Done() int64 { return p.done }

// Rate is the average per second.
func (p *Progress) Rate() int64 {
	return int64(float64(p.done-p.skipped) / max(time.Since(p.began).Seconds(), 0.001))
}

// Clear removes the line. The next Add shows it again.
func (p *Progress) Clear() {
	p.line.Show("")
	p.drawnAt = time.Time{}
}
