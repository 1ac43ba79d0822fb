package commandline

import (
	"errors"
	"strings"

	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
)

// RegisterColumns adds --columns, which chooses from these.
func RegisterColumns[T any](cmd *cobra.Command, columns []terminal.Column[T]) {
	names := terminal.ColumnNames(columns)
	cmd.Flags().StringSlice("columns", nil, "print only these comma-separated columns: "+strings.Join(names, ", "))
	CompleteFlag(cmd, "columns", CompleteList(names))
}

// ChosenColumns returns the columns that --columns asks for.
func ChosenColumns[T any](cmd *cobra.Command, columns []terminal.Column[T]) ([]terminal.Column[T], error) {
	names, err := cmd.Flags().GetStringSlice("columns")
	switch {
	case err != nil || !cmd.Flag("columns").Changed:
		return columns, err
	case Given(cmd, "columns") && Given(cmd, "json"):
		return nil, Usagef("--columns and --json can't be used together: JSON always has all fields")
	}
	chosen, err := terminal.Choose(columns, names)
	if err == nil && len(chosen) == 0 {
		err = errors.New("--columns is empty")
	}
	return chosen, asUsage(err)
}

// ListFlags say how much of a list to print.
type ListFlags struct {
	Limit int
	All   bool
}

// Register adds the flags. A defaultLimit of 0 prints everything.
func (f *ListFlags) Register(cmd *cobra.Command, defaultLimit int) {
	flags := cmd.Flags()
	usage := "print at most `n` of them"
	if defaultLimit == 0 {
		usage += " (default all)"
	}
	flags.IntVar(&f.Limit, "limit", defaultLimit, usage)
	flags.BoolVar(&f.All, "all", false, "print all of them")
}

// Check refuses flags that contradict each other, and sets All if the default is
// everything.
func (f *ListFlags) Check(cmd *cobra.Command) error {
	switch {
	case f.Limit == 0 && !cmd.Flag("limit").Changed:
		f.All = true
	case f.Limit < 1:
		return Usagef("--limit must be at least 1, not %d", f.Limit)
	case f.All && Given(cmd, "all") && Given(cmd, "limit"):
		return Usagef("--limit and --all can't be used together")
	case Given(cmd, "limit"):
		f.All = false // the environment may have set it
	}
	return nil
}
