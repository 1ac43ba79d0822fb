package terminal

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
)

// logEvery is how often progress is reported where there is no terminal.
const logEvery = 5 * time.Second

// Progress shows how far a long command has come: as a bar on a terminal, and
// elsewhere, such as in a log, as a line now and then.
type Progress struct {
	w     io.Writer
	unit  string
	total int64                    // -1: unknown
	bar   *progressbar.ProgressBar // nil if there is no terminal

	done            int64
	began, loggedAt time.Time
}

// NewProgress starts at 0 of total units, such as "pets". A total of -1 is
// unknown.
func NewProgress(w io.Writer, total int64, unit string) *Progress {
	p := &Progress{w: w, unit: unit, total: total, began: time.Now()}
	p.loggedAt = p.began
	if ScreenOf(w).Terminal {
		p.bar = progressbar.NewOptions64(total,
			progressbar.OptionSetWriter(w),
			progressbar.OptionSetWidth(14), // a line of more than 80 columns couldn't be overwritten
			progressbar.OptionShowCount(),
			progressbar.OptionShowIts(),
			progressbar.OptionSetItsString(unit),
			progressbar.OptionSetPredictTime(true),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionClearOnFinish(),
			progressbar.OptionSetRenderBlankState(true),
		)
	}
	return p
}

// Add counts n more.
func (p *Progress) Add(n int) {
	p.done += int64(n)
	if p.bar != nil {
		p.bar.Add(n) // fails only if printing does
		return
	}
	if now := time.Now(); now.Sub(p.loggedAt) >= logEvery && p.done != p.total {
		p.loggedAt = now
		of := ""
		if p.total >= 0 {
			of = " of " + Grouped(p.total)
		}
		fmt.Fprintf(p.w, "%s%s %s, %s a second\n", Grouped(p.done), of, p.unit, Grouped(p.Rate()))
	}
}

// Done is the count so far.
func (p *Progress) Done() int64 { return p.done }

// Rate is the average per second.
func (p *Progress) Rate() int64 {
	return int64(float64(p.done) / max(time.Since(p.began).Seconds(), 0.001))
}

// Clear removes the bar, so that something else can be printed. The next Add
// shows it again.
func (p *Progress) Clear() {
	if p.bar != nil {
		p.bar.Clear()
	}
}

// ShowElapsed shows that a task of unknown length is running: on a terminal as
// one line with the seconds it has taken, elsewhere as a line now and then. The
// returned function ends it, and does nothing when called again.
func ShowElapsed(w io.Writer, task string) (stop func()) {
	terminal, every := ScreenOf(w).Terminal, logEvery
	if terminal {
		every = time.Second
	}
	began, done, ended := time.Now(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(every)
		defer tick.Stop()
		shown := false
		for {
			select {
			case <-tick.C:
				line := fmt.Sprintf("%s (%.0f s)", task, time.Since(began).Seconds())
				if shown = true; terminal {
					fmt.Fprint(w, "\r"+line)
				} else {
					fmt.Fprintln(w, line)
				}
			case <-done:
				if shown && terminal {
					fmt.Fprint(w, "\r\x1b[K")
				}
				return
			}
		}
	}()
	return sync.OnceFunc(func() {
		close(done)
		<-ended
	})
}
