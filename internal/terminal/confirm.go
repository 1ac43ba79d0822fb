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

// Interactive reports whether in and out are both terminals, so that a person can
// answer a question.
func Interactive(in io.Reader, out io.Writer) bool {
	file, ok := in.(*os.File)
	return ok && term.IsTerminal(int(file.Fd())) && ScreenOf(out).Terminal
}

// Confirm asks a question and reports whether the answer was yes. Anything else is no.
// If ctx ends before there is an answer, it returns its error.
func Confirm(ctx context.Context, in io.Reader, out io.Writer, question string) (bool, error) {
	fmt.Fprint(out, Wrap(question+" [y/N] ", ScreenOf(out).Width))
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
