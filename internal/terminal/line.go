package terminal

import (
	"fmt"
	"io"
	"sync"
)

// Line is the line at the bottom of a terminal that says what a command is doing. It is
// overwritten whenever that changes. All other output to the terminal must go through
// [Line.Above], so that it never mixes with the line.
type Line struct {
	w      io.Writer
	screen Screen

	mu              sync.Mutex
	progress, brief string // brief is shown next to a wait
	wait            string // what it is waiting for
	shown           string
}

// NewLine returns a line on a writer whose screen is s. If the screen can't overwrite
// lines, the line is never shown.
func NewLine(w io.Writer, s Screen) *Line { return &Line{w: w, screen: s} }

func (l *Line) setProgress(text, brief string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.progress, l.brief = text, brief
	l.draw()
}

func (l *Line) setWait(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wait = text
	l.draw()
}

// draw shows the current text. It cuts text to the width of the screen, because a line
// that wraps can't be overwritten.
func (l *Line) draw() {
	text := l.progress
	if l.wait != "" {
		text = l.wait
		if l.brief != "" {
			text = l.brief + ". " + l.wait
		}
	}
	if l.screen.Width > 0 {
		text = cut(text, l.screen.Width-1)
	}
	if text == l.shown || !l.screen.Rewrites {
		return
	}
	l.shown = text
	fmt.Fprint(l.w, "\r\x1b[K", text)
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
	if len(p) > 0 && p[len(p)-1] == '\n' {
		a.line.draw()
	}
	return n, err
}
