package main

import (
	"iter"
	"slices"
	"strconv"
	"strings"

	"animalstore"
	"animalstore/internal/cli"
	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
)

// resource is how the commands call and print one kind of resource.
type resource[T any] struct {
	singular string
	plural   string // also the name of the group of commands
	columns  []terminal.Column[T]
}

// registerOutput adds the flags that say how to print the resource.
func (r resource[T]) registerOutput(cmd *cobra.Command) {
	columnsFlag(cmd, r.columns)
	jsonFlag(cmd)
}

// onServer makes cmd call run with a client and the columns to print. What can be checked
// without the server belongs in cmd.PreRunE.
func (r resource[T]) onServer(conn *connection, cmd *cobra.Command,
	run func(cmd *cobra.Command, s invocation, args []string, columns []terminal.Column[T]) error) *cobra.Command {
	if cmd.Args == nil {
		cmd.Args = cli.NoArguments
	}
	r.registerOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		columns, err := chosenColumns(cmd, r.columns)
		if err != nil {
			return err
		}
		return conn.do(cmd, func(s invocation) error { return run(cmd, s, args, columns) })
	}
	return cmd
}

// onItem makes cmd call run with the id in its argument, 0 without one, and print the result.
func (r resource[T]) onItem(conn *connection, cmd *cobra.Command,
	run func(cmd *cobra.Command, s invocation, id int64) (T, error)) *cobra.Command {
	if cmd.Args == nil {
		cmd.Args = cli.OneID(r.singular, r.plural)
	}
	print := func(cmd *cobra.Command, s invocation, args []string, columns []terminal.Column[T]) error {
		id := int64(0)
		if len(args) > 0 {
			id = cli.IDs(args)[0]
		}
		item, err := run(cmd, s, id)
		if err != nil {
			return err
		}
		return terminal.PrintItem(s.Printer, item, columns)
	}
	return r.onServer(conn, cmd, print)
}

// onList makes cmd print as much of a list as the flags ask for.
func (r resource[T]) onList(conn *connection, cmd *cobra.Command, f *listFlags,
	list func(cmd *cobra.Command, s invocation, pageSize int) iter.Seq2[T, error]) *cobra.Command {
	f.register(cmd, 20)
	r.onServer(conn, cmd, func(cmd *cobra.Command, s invocation, _ []string, columns []terminal.Column[T]) error {
		return r.printPages(s.Printer, f, columns, func(pageSize int) iter.Seq2[T, error] { return list(cmd, s, pageSize) })
	})
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := f.check(cmd); err != nil {
			return err
		}
		return run(cmd, args)
	}
	return cmd
}

// printPages prints as much of a list as the flags ask for, with as few requests as
// possible. list is called with the page size to request.
func (r resource[T]) printPages(p *terminal.Printer, f *listFlags, columns []terminal.Column[T], list func(pageSize int) iter.Seq2[T, error]) error {
	pageSize, printed := maxPage, 0
	if !f.all {
		pageSize = min(f.limit, maxPage)
	}
	err := terminal.PrintList(p, func(yield func(T, error) bool) {
		for entry, err := range list(pageSize) {
			printed++
			if !yield(entry, err) || !f.all && printed == f.limit {
				return
			}
		}
	}, columns)
	switch {
	case err != nil || p.JSON || !p.Screen.Terminal:
	case printed == 0:
		p.Note("No %s found.", r.plural)
	case !f.all && printed == f.limit:
		p.Note("Stopped after %d. For more, use --limit or --all.", printed)
	}
	return err
}

// printEach prints what do returns for each input, until the first error.
func printEach[In, Out any](p *terminal.Printer, inputs []In, columns []terminal.Column[Out], do func(In) (Out, error)) error {
	return terminal.PrintList(p, func(yield func(Out, error) bool) {
		for _, input := range inputs {
			if !yield(do(input)) {
				return
			}
		}
	}, columns)
}

// columnsFlag adds --columns, which chosenColumns reads.
func columnsFlag[T any](cmd *cobra.Command, columns []terminal.Column[T]) {
	names := columnNames(columns)
	cmd.Flags().StringSlice("columns", nil, "print only these comma-separated columns: "+strings.Join(names, ", "))
	cli.CompleteFlag(cmd, "columns", cli.CompleteList(names))
}

// columnNames are how a person chooses columns: their titles in lower case, without a unit
// and with hyphens instead of spaces.
func columnNames[T any](columns []terminal.Column[T]) []string {
	names := make([]string, len(columns))
	for i, c := range columns {
		title, _, _ := strings.Cut(c.Title, " (")
		names[i] = strings.ReplaceAll(strings.ToLower(title), " ", "-")
	}
	return names
}

// chosenColumns returns the columns that --columns asks for, in its order.
func chosenColumns[T any](cmd *cobra.Command, columns []terminal.Column[T]) ([]terminal.Column[T], error) {
	wanted, err := cmd.Flags().GetStringSlice("columns")
	switch {
	case err != nil || !cmd.Flag("columns").Changed:
		return columns, err
	case cli.Given(cmd, "columns") && cli.Given(cmd, "json"):
		return nil, cli.Usagef("use --columns or --json, not both: JSON always has all fields")
	case len(wanted) == 0:
		return nil, cli.Usagef("--columns is empty")
	}
	names, chosen := columnNames(columns), make([]terminal.Column[T], len(wanted))
	for i, name := range wanted {
		at := slices.Index(names, strings.ToLower(strings.TrimSpace(name)))
		if at < 0 {
			return nil, cli.Usagef("no column %q: use %s", terminal.Visible(name), animalstore.JoinOr(names))
		}
		chosen[i] = columns[at]
	}
	return chosen, nil
}

// stateColumn is a column for a state or status, in its colour.
func stateColumn[T any](title string, state func(T) string) terminal.Column[T] {
	colour := func(v T) terminal.Colour { return stateColour(state(v)) }
	return terminal.Column[T]{Title: title, Text: state, Colour: colour}
}

// stateColour is the colour of a state or status of any resource.
func stateColour(state string) terminal.Colour {
	switch state {
	case "available", "delivered", "active", "live":
		return terminal.Green
	case "pending", "placed", "approved", "paused", "banned", "suspended":
		return terminal.Yellow
	case "sold", "cancelled":
		return terminal.Faint
	}
	return terminal.Red
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

// check refuses contradictory flags. It sets all if the default is everything.
func (f *listFlags) check(cmd *cobra.Command) error {
	switch {
	case f.limit == 0 && !cmd.Flag("limit").Changed:
		f.all = true
	case f.limit < 1:
		return cli.Usagef("--limit must be at least 1, not %d", f.limit)
	case f.all && cli.Given(cmd, "all") && cli.Given(cmd, "limit"):
		return cli.Usagef("use --limit or --all, not both")
	case cli.Given(cmd, "limit"):
		f.all = false // the environment may have set it
	}
	return nil
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }
