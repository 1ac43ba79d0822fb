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

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

func dbCheckCommand() *cobra.Command {
	database := databaseFlag{flag: "database"}
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check that a store is sound",
		Long: `Check that a store is sound: that its file is intact, and that pets, orders,
categories and keys agree with each other. It only reads, and works while a
server runs on the same database. It exits with 1 if anything is wrong.`,
		Example: `  animalstore db check
  animalstore db check --database postgres://animalstore@db1/store`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			source, err := database.openSource(cmd.Context(), false)
			if err != nil {
				return err
			}
			defer source.Close()
			return check(cmd.Context(), source, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&database.url, "database", "sqlite:animalstore.db", databaseUsage)
	return cmd
}

// breachesShown is how many examples of what is wrong are printed.
const breachesShown = 5

// check runs every check and prints a line for each.
func check(ctx context.Context, source db.Source, stdout, stderr io.Writer) error {
	checks := append(source.Checks(), db.Checks...)
	wrong := 0
	for _, c := range checks {
		stop := showWork(stderr, c.Rule)
		n, first, err := db.Breaches(ctx, source, c, breachesShown)
		stop()
		switch {
		case ctx.Err() != nil:
			return errors.New("stopped")
		case errors.Is(err, db.ErrUnavailable):
			return fmt.Errorf("the database did not answer: %w", err)
		case err != nil: // a file can be so damaged that it cannot be read
			fmt.Fprintf(stdout, "WRONG  %s: %v\n", c.Rule, err)
		case n == 0:
			fmt.Fprintf(stdout, "ok     %s\n", c.Rule)
			continue
		default:
			fmt.Fprintf(stdout, "WRONG  %s, but %s\n", c.Rule, some(n, first))
		}
		wrong++
	}
	if wrong > 0 {
		return fmt.Errorf("%d of %d checks found something wrong. Keep a copy of the database as it is now, and go back to a backup from before if you have one", wrong, len(checks))
	}
	fmt.Fprintf(stderr, "All %d checks are fine.\n", len(checks))
	return nil
}

// some lists examples of n.
func some(n int64, first []string) string {
	text := strings.ReplaceAll(strings.Join(first, "; "), "\n", ", ")
	if rest := n - int64(len(first)); rest > 0 {
		text += fmt.Sprintf("; and %s more", grouped(rest))
	}
	return text
}

// showWork tells that something takes its time: on a terminal how long it has
// taken, and elsewhere with a line now and then. The returned function ends it.
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
