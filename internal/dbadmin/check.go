package dbadmin

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"animalstore/internal/db"
	"animalstore/internal/db/transfer"
	"animalstore/internal/terminal"
)

// checkResult is what --json prints.
type checkResult struct {
	Checks   int            `json:"checks"`
	Failed   int            `json:"failed"`
	Findings []checkFinding `json:"findings"`
}

type checkFinding struct {
	Rule    string `json:"rule"`
	OK      bool   `json:"ok"`
	Problem string `json:"problem,omitempty"`
}

// Check runs every check and prints a line for each, or all of them as JSON.
func Check(ctx context.Context, source db.Source, p *terminal.Printer) error {
	show := &checkProgress{p: p, stop: func() {}}
	ran, failed, err := transfer.Check(ctx, source, show)
	show.stop()
	if p.JSON && err == nil {
		err = p.PrintJSON(checkResult{ran, failed, show.findings})
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
	return nil
}

// checkProgress prints what each check found and, while one takes long, its name.
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
