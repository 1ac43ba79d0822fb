package main

import (
	"iter"
	"strconv"

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

// chosen returns the columns that the flags ask for.
func (r resource[T]) chosen(cmd *cobra.Command) ([]terminal.Column[T], error) {
	return chosenColumns(cmd, r.columns)
}

// onItem makes cmd call run with the id in its argument and print the result. What
// can be checked without the server belongs in cmd.PreRunE.
func (r resource[T]) onItem(conn *connection, cmd *cobra.Command, run func(cmd *cobra.Command, s session, id int64) (T, error)) *cobra.Command {
	if cmd.Args == nil {
		cmd.Args = cli.OneID(r.singular, r.plural)
	}
	r.registerOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		columns, err := r.chosen(cmd)
		if err != nil {
			return err
		}
		return conn.do(cmd, func(s session) error {
			item, err := run(cmd, s, cli.IDs(args)[0])
			if err != nil {
				return err
			}
			return terminal.PrintItem(s.Printer, item, columns)
		})
	}
	return cmd
}

// onList makes cmd print as much of a list as the flags ask for.
func (r resource[T]) onList(conn *connection, cmd *cobra.Command, f *listFlags, list func(cmd *cobra.Command, s session, pageSize int) iter.Seq2[T, error]) *cobra.Command {
	if cmd.Args == nil {
		cmd.Args = cli.NoArguments
	}
	f.register(cmd, 20)
	r.registerOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := f.check(cmd); err != nil {
			return err
		}
		columns, err := r.chosen(cmd)
		if err != nil {
			return err
		}
		return conn.do(cmd, func(s session) error {
			return r.printPages(s.Printer, f, columns, func(pageSize int) iter.Seq2[T, error] { return list(cmd, s, pageSize) })
		})
	}
	return cmd
}

// printPages prints as much of a list as the flags ask for. list is called with
// the page size to request.
func (r resource[T]) printPages(p *terminal.Printer, f *listFlags, columns []terminal.Column[T], list func(pageSize int) iter.Seq2[T, error]) error {
	pages := terminal.Pages{Limit: f.limit, All: f.all, MaxSize: maxPage, Entries: r.plural, ForMore: "use --limit N or --all"}
	return terminal.PrintPages(p, pages, list, columns)
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }
