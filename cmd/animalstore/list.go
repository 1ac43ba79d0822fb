package main

import (
	"errors"
	"fmt"
	"iter"

	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
)

// listFlags say how much of a list to print.
type listFlags struct {
	limit int
	all   bool
}

// register adds the flags. A defaultLimit of 0 prints everything.
func (f *listFlags) register(cmd *cobra.Command, defaultLimit int) {
	flags := cmd.Flags()
	usage := "print at most `n` of them"
	if defaultLimit == 0 {
		usage += " (default all)"
	}
	flags.IntVar(&f.limit, "limit", defaultLimit, usage)
	flags.BoolVar(&f.all, "all", false, "print all of them")
	jsonFlag(cmd)
}

// jsonFlag adds --json to a command. newPrinter reads it.
func jsonFlag(cmd *cobra.Command) { cmd.Flags().Bool("json", false, "print JSON") }

func (f *listFlags) check(cmd *cobra.Command) error {
	switch {
	case f.limit == 0 && !cmd.Flag("limit").Changed:
		f.all = true
	case f.limit < 1:
		return usageError{fmt.Errorf("--limit must be at least 1, not %d", f.limit)}
	case f.all && given(cmd, "all") && given(cmd, "limit"):
		return usageError{errors.New("--limit and --all can't be used together")}
	case given(cmd, "limit"):
		f.all = false // the environment may have set it
	}
	return nil
}

// maxPage is the largest page that the server returns.
const maxPage = 100

// printPages prints as much of a list as the flags ask for. list is called with
// the page size to request.
func (r resource[T]) printPages(p *terminal.Printer, f *listFlags, list func(pageSize int) iter.Seq2[T, error]) error {
	hints := p.Screen.Terminal && !p.JSON
	// Reading one entry more shows whether there are more, unless that would
	// take another request.
	read := f.limit
	if hints && f.limit%maxPage != 0 {
		read++
	}
	pageSize := min(read, maxPage)
	if f.all {
		pageSize = maxPage
	}
	printed, more := 0, "may be"
	bounded := func(yield func(T, error) bool) {
		for entry, err := range list(pageSize) {
			if !f.all && printed == f.limit {
				more = "are"
				return
			}
			if !yield(entry, err) {
				return
			}
			if printed++; !f.all && printed == read {
				return
			}
		}
		more = ""
	}
	err := terminal.PrintList(p, bounded, r.columns)
	switch {
	case err != nil || !hints:
	case printed == 0:
		p.Note("No %s found.", r.plural)
	case more != "":
		p.Note("There %s more %s: use --limit N or --all.", more, r.plural)
	}
	return err
}
