package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"animalstore/internal/db"
	"animalstore/internal/db/transfer"
	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
)

func dbCheckCommand() *cobra.Command {
	var database databaseFlag
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
	database.register(cmd.Flags())
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

func (p *checkProgress) Checking(rule string) {
	p.stop = terminal.ShowElapsed(p.stderr, "checking: "+rule)
}

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
		text += fmt.Sprintf("; and %s more", terminal.Grouped(rest))
	}
	return text
}
