package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progressEvery is how often a line tells of the progress where nobody watches.
const progressEvery = 5 * time.Second

// progress shows how far a long command has come: with a bar on a terminal, and
// elsewhere, such as in a log, with a line now and then.
type progress struct {
	w     io.Writer
	what  string                   // is counted
	total int64                    // -1: not known
	bar   *progressbar.ProgressBar // nil where there is no terminal

	done          int64
	began, saidAt time.Time
}

func newProgress(w io.Writer, total int64, what string) *progress {
	p := &progress{w: w, what: what, total: total, began: time.Now()}
	p.saidAt = p.began
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.bar = progressbar.NewOptions64(total,
			progressbar.OptionSetWriter(w),
			progressbar.OptionSetWidth(14), // with the numbers below 80 columns, or lines would pile up,
			progressbar.OptionShowCount(),
			progressbar.OptionShowIts(),
			progressbar.OptionSetItsString(what),
			progressbar.OptionSetPredictTime(true),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionClearOnFinish(),
			progressbar.OptionSetRenderBlankState(true),
		)
	}
	return p
}

// add counts n more.
func (p *progress) add(n int) {
	p.done += int64(n)
	if p.bar != nil {
		p.bar.Add(n) // it can fail only as printing can
		return
	}
	if now := time.Now(); now.Sub(p.saidAt) >= progressEvery && p.done != p.total {
		p.saidAt = now
		of := ""
		if p.total >= 0 {
			of = " of " + grouped(p.total)
		}
		fmt.Fprintf(p.w, "%s%s %s, %s a second\n", grouped(p.done), of, p.what, grouped(p.rate()))
	}
}

// rate is how many there were a second.
func (p *progress) rate() int64 {
	return int64(float64(p.done) / max(time.Since(p.began).Seconds(), 0.001))
}

// end takes the bar away, so that what is printed next has the line to itself.
func (p *progress) end() {
	if p.bar != nil {
		p.bar.Clear()
	}
}

// grouped writes a number for people: 1,234,567.
func grouped(n int64) string {
	digits := fmt.Sprint(n)
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}
