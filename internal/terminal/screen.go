// Package terminal prints the output of commands: tables, colours and progress on a
// terminal, plain lines in a pipe or a log.
package terminal

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

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
	Red    Colour = "\x1b[31m"
	Green  Colour = "\x1b[32m"
	Yellow Colour = "\x1b[33m"
	Faint  Colour = "\x1b[2m"
)

// Interactive reports whether in and out are both terminals, so that a person can
// answer a question.
func Interactive(in io.Reader, out io.Writer) bool {
	file, ok := in.(*os.File)
	return ok && term.IsTerminal(int(file.Fd())) && ScreenOf(out).Terminal
}

// Confirm asks a question and reports whether the answer was yes. Anything else is no.
// If ctx ends first, it returns its error.
func Confirm(ctx context.Context, in io.Reader, out io.Writer, question string) (bool, error) {
	fmt.Fprint(out, question, " [y/N] ")
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(in).ReadString('\n')
		answer <- line
	}()
	select {
	case line := <-answer:
		if !strings.HasSuffix(line, "\n") { // Ctrl-D
			fmt.Fprintln(out)
		}
		text := strings.ToLower(strings.TrimSpace(line))
		return text == "y" || text == "yes", nil
	case <-ctx.Done():
		fmt.Fprintln(out)
		return false, ctx.Err()
	}
}
