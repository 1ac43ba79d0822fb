package terminal

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// logEvery is how often progress is printed without a terminal.
const logEvery = 5 * time.Second

// drawEvery is the minimum time between updates on a terminal.
const drawEvery = 100 * time.Millisecond

// Progress shows the progress of a long command: as a bar on a terminal, elsewhere,
// such as in a log, as a line from time to time.
type Progress struct {
	line  *Line
	unit  string
	total int64 // -1: unknown
	pace  string

	done, before    int64 // before: done by an earlier run
	began, loggedAt time.Time
	drawnAt         time.Time
}

// NewProgress starts at 0 of total units, such as "pets", on a new line. A total of -1
// means unknown.
func NewProgress(w io.Writer, total int64, unit string) *Progress {
	return NewLine(w, ScreenOf(w)).Progress(total, unit)
}

// Progress starts at 0 of total units in the line.
func (l *Line) Progress(total int64, unit string) *Progress {
	now := time.Now()
	p := &Progress{line: l, unit: unit, total: total, began: now, loggedAt: now}
	p.show(now)
	return p
}

// Add counts n more.
func (p *Progress) Add(n int) {
	p.done += int64(n)
	p.show(time.Now())
}

// AddDone counts n that were done earlier and don't count towards the rate.
func (p *Progress) AddDone(n int64) {
	p.before += n
	p.Add(int(n))
}

// SetPace shows why the command isn't faster; "" means it runs at full speed. Without a
// terminal, the reason is printed once.
func (p *Progress) SetPace(why string) {
	if why == p.pace {
		return
	}
	p.pace = why
	if why != "" && !p.line.screen.Rewrites {
		fmt.Fprintf(p.line.w, "%s.\n", why)
	}
	p.drawnAt = time.Time{}
	p.show(time.Now())
}

func (p *Progress) show(now time.Time) {
	switch {
	case p.line.screen.Rewrites && now.Sub(p.drawnAt) >= drawEvery:
		p.drawnAt = now
		p.line.setProgress(p.text(), p.count())
	case !p.line.screen.Rewrites && now.Sub(p.loggedAt) >= logEvery && p.done != p.total:
		p.loggedAt = now
		fmt.Fprintf(p.line.w, "%s, %s a second\n", p.count(), Grouped(p.Rate()))
	}
}

// count formats how many are done.
func (p *Progress) count() string {
	if p.total < 0 {
		return Grouped(p.done) + " " + p.unit
	}
	return fmt.Sprintf("%s of %s %s", Grouped(p.done), Grouped(p.total), p.unit)
}

const progressWidth = 16

// text is the line on a terminal. The most important part comes first, because a narrow
// screen cuts off the end.
func (p *Progress) text() string {
	text, rate := p.count(), p.Rate()
	if p.pace != "" {
		return text + ". " + p.pace
	}
	if p.total > 0 {
		filled := int(progressWidth * min(p.done, p.total) / p.total)
		text = "[" + strings.Repeat("=", filled) + strings.Repeat(" ", progressWidth-filled) + "] " + text
	}
	if rate > 0 {
		text += fmt.Sprintf(", %s a second", Grouped(rate))
		if p.total > p.done {
			text += fmt.Sprintf(", %s left", Duration(time.Duration((p.total-p.done)/rate)*time.Second))
		}
	}
	return text
}

// Done returns the count so far.
func (p *Progress) Done() int64 { return p.done }

// Rate is the average per second.
func (p *Progress) Rate() int64 {
	return int64(float64(p.done-p.before) / max(time.Since(p.began).Seconds(), 0.001))
}

// Clear removes the bar. The next Add shows it again.
func (p *Progress) Clear() {
	p.line.setProgress("", "")
	p.drawnAt = time.Time{}
}

// ShowElapsed shows that a task of unknown length is running: on a terminal as one line
// with the elapsed seconds, elsewhere as a line from time to time. The returned
// function ends it; calling it again does nothing.
func ShowElapsed(w io.Writer, task string) (stop func()) {
	line, every := NewLine(w, ScreenOf(w)), logEvery
	if line.screen.Rewrites {
		every = time.Second
	}
	began, done, ended := time.Now(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				text := fmt.Sprintf("%s (%.0f s)", task, time.Since(began).Seconds())
				if line.setProgress(text, ""); !line.screen.Rewrites {
					fmt.Fprintln(w, text)
				}
			case <-done:
				line.setProgress("", "")
				return
			}
		}
	}()
	return sync.OnceFunc(func() {
		close(done)
		<-ended
	})
}
