package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"animalstore/internal/db"
	"animalstore/internal/db/transfer"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

func dbCheckCommand() *cobra.Command {
	database := databaseFlag{flag: "database"}
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check that a store is consistent",
		Long: `Check that a store is consistent: that its file is intact, and that pets,
orders, categories and keys agree with each other. It only reads, so it works
while a server is running on the same database. It exits with 1 if anything is
wrong.`,
		Example: `  animalstore db check
  animalstore db check --database postgres://animalstore@db1/store`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			source, err := database.openSource(cmd.Context(), false)
			if err != nil {
				return err
			}
			defer source.Close()
			return checkStore(cmd.Context(), source, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&database.url, "database", "sqlite:animalstore.db", databaseUsage)
	return cmd
}

// checkStore runs every check and prints a line for each.
func checkStore(ctx context.Context, source db.Source, stdout, stderr io.Writer) error {
	show := &checkProgress{stdout: stdout, stderr: stderr}
	ran, failed, err := transfer.Check(ctx, source, show)
	switch show.end(); {
	case ctx.Err() != nil:
		return errors.New("stopped")
	case err != nil:
		return fmt.Errorf("the database did not respond: %w", err)
	case failed > 0:
		return fmt.Errorf("%d of %d checks found something wrong. Keep a copy of the database as it is now, and restore an earlier backup if you have one", failed, ran)
	}
	fmt.Fprintf(stderr, "All %d checks passed.\n", ran)
	return nil
}

// checkProgress prints what each check found and, while one takes long, its name.
type checkProgress struct {
	stdout, stderr io.Writer
	stop           func() // nil between two checks
}

func (p *checkProgress) Checking(rule string) { p.stop = showWork(p.stderr, rule) }

func (p *checkProgress) Checked(f transfer.Finding) {
	p.end()
	switch {
	case f.Err != nil: // a file can be too damaged to read
		fmt.Fprintf(p.stdout, "WRONG  %s: %v\n", f.Rule, f.Err)
	case f.OK():
		fmt.Fprintf(p.stdout, "ok     %s\n", f.Rule)
	default:
		fmt.Fprintf(p.stdout, "WRONG  %s, but %s\n", f.Rule, examplesOf(f))
	}
}

func (p *checkProgress) end() {
	if p.stop != nil {
		p.stop()
		p.stop = nil
	}
}

func examplesOf(f transfer.Finding) string {
	text := strings.ReplaceAll(strings.Join(f.Examples, "; "), "\n", ", ")
	if rest := f.Violations - int64(len(f.Examples)); rest > 0 {
		text += fmt.Sprintf("; and %s more", grouped(rest))
	}
	return text
}

// showWork reports that something takes long: on a terminal how long so far, and
// elsewhere with an occasional line. The returned function ends it.
func showWork(w io.Writer, what string) (stop func()) {
	f, ok := w.(*os.File)
	terminal := ok && term.IsTerminal(int(f.Fd()))
	every := progressEvery
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
				line := fmt.Sprintf("checking for %.0f s: %s", time.Since(began).Seconds(), what)
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
	return func() {
		close(done)
		<-ended
	}
}
