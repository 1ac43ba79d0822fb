package main

import (
	"fmt"
	"slices"
	"strconv"

	"animalstore/internal/commandline"

	"github.com/spf13/cobra"
)

var (
	variable      = commandline.Variable
	given         = commandline.Given
	completeFlag  = commandline.CompleteFlag
	completeList  = commandline.CompleteList
	completeFiles = commandline.CompleteFiles
	verbAliases   = commandline.VerbAliases
)

// readEnvironment sets flags that were not given from the environment.
func readEnvironment(cmd *cobra.Command) error {
	if err := commandline.ReadEnvironment(cmd); err != nil {
		return usageError{err}
	}
	return nil
}

func parseInteger(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

// parseID reads an id from an argument.
func parseID(arg, group string) (int64, error) {
	id, ok := parseInteger(arg)
	if !ok {
		return 0, usageError{fmt.Errorf("%q isn't a valid id: \"animalstore %s list\" shows the ids", arg, group)}
	}
	return id, nil
}

// oneID checks the arguments of a command for one resource of a group.
func oneID(singular, group string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usageError{fmt.Errorf("name the %s by its id: \"animalstore %s list\" shows them", singular, group)}
		}
		_, err := parseID(args[0], group)
		return err
	}
}

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("%q takes no arguments, but got %q. See %q", cmd.CommandPath(), args[0], cmd.CommandPath()+" --help")}
	}
	return nil
}

// groupCommand makes a command the group of others. An annotation with the name of a
// verb says why the group doesn't have it.
func groupCommand(cmd *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	for _, c := range commands {
		c.Aliases = append(slices.Clone(verbAliases[c.Name()]), c.Aliases...)
	}
	cmd.DisableFlagsInUseLine = true
	cmd.Args, cmd.RunE = cobra.ArbitraryArgs, onlySubcommands
	cmd.AddCommand(commands...)
	return cmd
}

// onlySubcommands runs a command that only groups others. For a mistyped
// subcommand, cobra itself would print help and succeed.
func onlySubcommands(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return unknownCommand(cmd, args[0])
	}
	return cmd.Help()
}
