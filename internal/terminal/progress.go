package terminal

import (
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	logEvery  = 5 * time.Second        // how often the line is printed without a terminal
	drawEvery = 100 * time.Millisecond // how often progress is drawn on a terminal
)

// Line is the line at the bottom of a terminal that says what a command is doing. It is
// overwritten whenever that changes. All other output to the terminal must go through
// [Line.Above], so that it never mixes with the line. Without a terminal, such as in a
// log, the text is printed from time to time.
type Line struct {
	w      io.Writer
	screen Screen

	mu      sync.Mutex
	text    string
	shown   string
	printed time.Time // when a text was last printed without a terminal

	waiting  sync.Mutex // several requests may begin to wait at once
	waitEnds time.Time
	stopWait func()
}

// NewLine returns an empty line on a writer whose screen is s.
func NewLine(w io.Writer, s Screen) *Line {
	return &Line{w: w, screen: s, printed: time.Now(), stopWait: func() {}}
}

// set changes the text. "" removes the line.
func (l *Line) set(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = text
	if l.screen.Rewrites {
		l.draw()
	} else if now := time.Now(); text != "" && now.Sub(l.printed) >= logEvery {
		l.printed = now
		fmt.Fprintln(l.w, text)
	}
}

// draw cuts the text to the width of the screen, because a line that wraps can't be
// overwritten.
func (l *Line) draw() {
	text := l.text
	if l.screen.Width > 0 {
		text = cut(text, l.screen.Width-1)
	}
	if text != l.shown {
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
	if a.line.shown != "" {
		a.line.shown = ""
		fmt.Fprint(a.line.w, "\r\x1b[K")
	}
	n, err := a.Writer.Write(p)
	if a.line.screen.Rewrites && len(p) > 0 && p[len(p)-1] == '\n' {
		a.line.draw()
	}
	return n, err
}

// repeat shows a text that changes every second until it is "" or stop is called.
func (l *Line) repeat(text func() string) (stop func()) {
	stopped, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		defer l.set("")
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for now := text(); now != ""; now = text() {
			l.set(now)
			select {
			case <-tick.C:
			case <-stopped:
				return
			}
		}
	}()
	return sync.OnceFunc(func() {
		close(stopped)
		<-ended
	})
}

// Wait counts down until a command continues, and says why it waits. It replaces the
// previous wait. Without a terminal, each wait is printed once.
func (l *Line) Wait(wait time.Duration, reason string) {
	l.waiting.Lock()
	defer l.waiting.Unlock()
	l.stopWait()
	until, previous := time.Now().Add(wait), l.waitEnds
	switch {
	case wait < time.Second: // too short to read
		return
	case l.screen.Rewrites:
		l.stopWait = l.repeat(func() string {
			if left := time.Until(until); left > 0 {
				return fmt.Sprintf("%s: retrying in %s (Ctrl-C stops)", reason, Duration(left))
			}
			return ""
		})
	case until.Sub(previous).Abs() > time.Second: // not yet printed for another request
		fmt.Fprintf(l.w, "%s: retrying in %s\n", reason, Duration(wait))
	}
	l.waitEnds = until
}

// EndWait removes the wait from the line.
func (l *Line) EndWait() {
	l.waiting.Lock()
	defer l.waiting.Unlock()
	l.stopWait()
}

// ShowElapsed shows for how many seconds a task of unknown length has been running. The
// returned function ends it; calling it again does nothing.
func ShowElapsed(w io.Writer, task string) (stop func()) {
	began := time.Now()
	return NewLine(w, ScreenOf(w)).repeat(func() string {
		return fmt.Sprintf("%s (%.0f s)", task, time.Since(began).Seconds())
	})
}

// Progress counts what a long command has done, and shows it in a line.
type Progress struct {
	line  *Line
	unit  string
	total int64 // -1: unknown

	done, skipped  int64
	began, drawnAt time.Time
}

// NewProgress starts at 0 of total units, such as "pets", on a new line. A total of -1
// means unknown.
func NewProgress(w io.Writer, total int64, unit string) *Progress {
	return NewLine(w, ScreenOf(w)).Progress(total, unit)
}

// Progress starts at 0 of total units in the line.
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
		p.line.set(p.text())
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
	p.line.set("")
	p.drawnAt = time.Time{}
}
