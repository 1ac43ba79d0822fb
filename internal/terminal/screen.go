// Package terminal prints the output of commands: tables, colours, progress and
// countdowns on a terminal, plain lines in a pipe or a log.
package terminal

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Screen describes what the terminal behind a writer can do. The zero Screen isn't a
// terminal.
type Screen struct {
	Terminal bool
	Width    int  // in columns; 0 if unknown
	Colour   bool // colours may be used
	Rewrites bool // a line can be overwritten
}

// ScreenOf inspects a writer and the environment variables TERM and NO_COLOR.
func ScreenOf(w io.Writer) Screen {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return Screen{}
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		width = 0
	}
	smart := os.Getenv("TERM") != "dumb"
	return Screen{Terminal: true, Width: width, Colour: smart && os.Getenv("NO_COLOR") == "", Rewrites: smart}
}

// Colour is the escape sequence that switches a terminal to a colour.
type Colour string

// The colours in use.
const (
	Plain  Colour = ""
	Red    Colour = "\x1b[31m"
	Green  Colour = "\x1b[32m"
	Yellow Colour = "\x1b[33m"
	Faint  Colour = "\x1b[2m"
)

func (c Colour) paint(text string) string {
	if c == Plain || text == "" {
		return text
	}
	return string(c) + text + "\x1b[0m"
}
