package main

import (
	"iter"

	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
)

// resource is how the commands call and print one kind of resource.
type resource[T any] struct {
	singular string
	plural   string // also the name of the group of commands
	columns  []terminal.Column[T]
}

// onItem makes cmd call run with the id in its argument and print the result. What
// can be checked without the server belongs in cmd.PreRunE.
func (r resource[T]) onItem(conn *connection, cmd *cobra.Command, run func(cmd *cobra.Command, s session, id int64) (T, error)) *cobra.Command {
	if cmd.Args == nil {
		cmd.Args = oneID(r.singular, r.plural)
	}
	jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		id, err := parseID(args[0], r.plural)
		if err != nil {
			return err
		}
		return conn.do(cmd, func(s session) error {
			item, err := run(cmd, s, id)
			if err != nil {
				return err
			}
			return terminal.PrintItem(s.Printer, item, r.columns)
		})
	}
	return cmd
}

// onList makes cmd print as much of a list as the flags ask for.
func (r resource[T]) onList(conn *connection, cmd *cobra.Command, f *listFlags, list func(cmd *cobra.Command, s session, pageSize int) iter.Seq2[T, error]) *cobra.Command {
	cmd.Args = noArguments
	f.register(cmd, 20)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := f.check(cmd); err != nil {
			return err
		}
		return conn.do(cmd, func(s session) error {
			return r.printPages(s.Printer, f, func(pageSize int) iter.Seq2[T, error] { return list(cmd, s, pageSize) })
		})
	}
	return cmd
}
