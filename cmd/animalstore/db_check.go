package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"animalstore/internal/cli"
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
		Long: `Check that a store is consistent: that its file is intact, that pets, photos,
orders, categories and keys agree with each other, that no byte of a photo was
changed, and that no event is missing. It also counts them. It only reads, so
it works while a server is running on the same database. It exits with 1 if
anything is wrong.`,
		Example: `  animalstore db check
  animalstore db check --database postgres://animalstore@db1/store`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			source, err := database.openSource(cmd.Context(), false)
			if err != nil {
				return err
			}
			defer source.Close()
			return checkStore(cmd.Context(), source, newPrinter(cmd))
		},
	}
	database.register(cmd.Flags())
	jsonFlag(cmd)
	return cmd
}

// checkResult is what --json prints.
type checkResult struct {
	Checks   int            `json:"checks"`
	Failed   int            `json:"failed"`
	Findings []checkFinding `json:"findings"`

	Counts transfer.Counts `json:"counts"`
}

type checkFinding struct {
	Rule    string `json:"rule"`
	OK      bool   `json:"ok"`
	Problem string `json:"problem,omitempty"`
}

// checkStore runs every check and prints a line for each, or all of them as JSON.
func checkStore(ctx context.Context, source db.Source, p *terminal.Printer) error {
	show := &checkProgress{p: p, stop: func() {}}
	ran, failed, err := transfer.Check(ctx, source, show)
	show.stop()
	counts, countErr := transfer.Count(ctx, source)
	if failed == 0 { // a damaged store may not even be counted
		err = cmp.Or(err, countErr)
	}
	if p.JSON && err == nil {
		err = p.PrintJSON(checkResult{ran, failed, show.findings, counts})
	}
	switch {
	case ctx.Err() != nil:
		return errors.New("stopped")
	case err != nil:
		return fmt.Errorf("the database did not respond: %w", err)
	case failed > 0:
		return fmt.Errorf("%d of %d checks found something wrong. Keep a copy of the database as it is now, and restore an earlier backup if you have one", failed, ran)
	}
	p.Note("All %d checks passed.", ran)
	photos := terminal.Count(counts.Photos, "photo", "photos")
	if counts.Photos > 0 {
		photos += " (" + megabytes(counts.PhotoBytes) + ")"
	}
	p.Note("The store has %s, %s, %s, %s and %s.", terminal.Count(counts.Pets, "pet", "pets"), photos, terminal.Count(counts.Orders, "order", "orders"),
		terminal.Count(counts.Categories, "category", "categories"), terminal.Count(counts.Keys, "key", "keys"))
	return nil
}

// checkProgress prints what each check found, and the name of a slow one while it runs.
type checkProgress struct {
	p        *terminal.Printer
	findings []checkFinding
	stop     func() // ends the line with the name
}

func (p *checkProgress) Checking(rule string) {
	p.stop = terminal.ShowElapsed(p.p.Notes, "checking: "+rule)
}

func (p *checkProgress) Checked(f transfer.Finding) {
	p.stop()
	finding, line := checkFinding{Rule: f.Rule}, ""
	switch {
	case f.Err != nil: // a file can be too damaged to read
		finding.Problem = f.Err.Error()
		line = fmt.Sprintf("WRONG  %s: %v", f.Rule, f.Err)
	case f.OK():
		finding.OK = true
		line = "ok     " + f.Rule
	default:
		finding.Problem = examplesOf(f)
		line = fmt.Sprintf("WRONG  %s, but %s", f.Rule, finding.Problem)
	}
	p.findings = append(p.findings, finding)
	if !p.p.JSON {
		fmt.Fprintln(p.p.Out, line)
	}
}

func examplesOf(f transfer.Finding) string {
	text := strings.ReplaceAll(strings.Join(f.Examples, "; "), "\n", ", ")
	if rest := f.Violations - int64(len(f.Examples)); rest > 0 {
		text += fmt.Sprintf("; and %s more", terminal.Grouped(rest))
	}
	return text
}
