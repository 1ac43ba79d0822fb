package main

import (
	"errors"
	"strings"

	"animalstore/internal/cli"
	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
)

// jsonFlag adds --json, which newPrinter reads.
func jsonFlag(cmd *cobra.Command) { cmd.Flags().Bool("json", false, "print JSON") }

// newPrinter returns a printer for the results of a command.
func newPrinter(cmd *cobra.Command) *terminal.Printer {
	asJSON := cmd.Flag("json") != nil && cmd.Flag("json").Value.String() == "true"
	return terminal.NewPrinter(cmd.OutOrStdout(), cmd.ErrOrStderr(), asJSON)
}

// yesFlag adds --yes to a command that can't be undone.
func yesFlag(cmd *cobra.Command) {
	cmd.Flags().BoolP("yes", "y", false, "don't ask for confirmation on a terminal")
}

// needsConfirmation reports whether a command needs confirmation: on a terminal, unless --yes is given.
func needsConfirmation(cmd *cobra.Command) bool {
	yes, _ := cmd.Flags().GetBool("yes")
	return !yes && terminal.Interactive(cmd.InOrStdin(), cmd.ErrOrStderr())
}

// requireConfirmation returns an error if the command needs confirmation and doesn't get it.
func requireConfirmation(cmd *cobra.Command, question string) error {
	if !needsConfirmation(cmd) {
		return nil
	}
	agreed, err := terminal.Confirm(cmd.Context(), cmd.InOrStdin(), cmd.ErrOrStderr(), question)
	if err == nil && !agreed {
		err = errors.New("nothing was changed")
	}
	return err
}

// columnsFlag adds --columns, which chosenColumns reads.
func columnsFlag[T any](cmd *cobra.Command, columns []terminal.Column[T]) {
	names := terminal.ColumnNames(columns)
	cmd.Flags().StringSlice("columns", nil, "print only these comma-separated columns: "+strings.Join(names, ", "))
	cli.CompleteFlag(cmd, "columns", cli.CompleteList(names))
}

// chosenColumns returns the columns that --columns asks for.
func chosenColumns[T any](cmd *cobra.Command, columns []terminal.Column[T]) ([]terminal.Column[T], error) {
	names, err := cmd.Flags().GetStringSlice("columns")
	switch {
	case err != nil || !cmd.Flag("columns").Changed:
		return columns, err
	case cli.Given(cmd, "columns") && cli.Given(cmd, "json"):
		return nil, cli.Usagef("--columns and --json can't be used together: JSON always has all fields")
	case len(names) == 0:
		return nil, cli.Usagef("--columns is empty")
	}
	chosen, err := terminal.Choose(columns, names)
	if err != nil {
		return nil, cli.Usagef("%w", err)
	}
	return chosen, nil
}

// listFlags say how much of a list to print.
type listFlags struct {
	limit int
	all   bool
}

// register adds the flags. A defaultLimit of 0 prints everything.
func (f *listFlags) register(cmd *cobra.Command, defaultLimit int) {
	usage := "print at most `n` of them"
	if defaultLimit == 0 {
		usage += " (default all)"
	}
	cmd.Flags().IntVar(&f.limit, "limit", defaultLimit, usage)
	cmd.Flags().BoolVar(&f.all, "all", false, "print all of them")
}

// check refuses flags that contradict each other, and sets all if the default is
// everything.
func (f *listFlags) check(cmd *cobra.Command) error {
	switch {
	case f.limit == 0 && !cmd.Flag("limit").Changed:
		f.all = true
	case f.limit < 1:
		return cli.Usagef("--limit must be at least 1, not %d", f.limit)
	case f.all && cli.Given(cmd, "all") && cli.Given(cmd, "limit"):
		return cli.Usagef("--limit and --all can't be used together")
	case cli.Given(cmd, "limit"):
		f.all = false // the environment may have set it
	}
	return nil
}
