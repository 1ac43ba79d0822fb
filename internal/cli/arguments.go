package cli

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
)

// UsageError is a mistake in the command line.
type UsageError struct{ err error }

func (e UsageError) Error() string { return e.err.Error() }
func (e UsageError) Unwrap() error { return e.err }

// Usagef returns a [UsageError] with a message like that of [fmt.Errorf].
func Usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// ParseInteger reads a number that may be an id.
func ParseInteger(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

// CheckID refuses an argument that isn't an id. group is the group of commands whose
// list shows the ids.
func CheckID(arg, group string) error {
	if _, ok := ParseInteger(arg); !ok {
		return Usagef("%q isn't a valid id: \"animalstore %s list\" shows the ids", arg, group)
	}
	return nil
}

// OneID checks the arguments of a command for one resource of a group.
func OneID(singular, group string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return Usagef("give the id of one %s: \"animalstore %s list\" shows them", singular, group)
		}
		return CheckID(args[0], group)
	}
}

// SomeIDs checks the arguments of a command for up to most resources of a group.
func SomeIDs(group string, most int) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return Usagef("give the ids of %s: \"animalstore %s list\" shows them", group, group)
		case len(args) > most:
			return Usagef("at most %d %s can be removed at once, not %d", most, group, len(args))
		}
		for _, arg := range args {
			if err := CheckID(arg, group); err != nil {
				return err
			}
		}
		return nil
	}
}

// IDs are the ids in arguments that [OneID] or [SomeIDs] has checked, each once.
func IDs(args []string) (ids []int64) {
	for _, arg := range args {
		if id, _ := ParseInteger(arg); !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// NoArguments refuses arguments.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usagef("%q takes no arguments, but got %q. See %q", cmd.CommandPath(), args[0], cmd.CommandPath()+" --help")
	}
	return nil
}

// OneFile checks the arguments of a command for one file. The message says which.
func OneFile(message string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 || args[0] == "" {
			return Usagef("%s", message)
		}
		return nil
	}
}

// NotEmpty refuses a flag with an empty value, as from a script's unset variable: it
// would have the same effect as no flag.
func NotEmpty(cmd *cobra.Command, flag string) error {
	if f := cmd.Flag(flag); f.Changed && f.Value.String() == "" {
		return Usagef("--%s is empty", flag)
	}
	return nil
}

// Group makes a command the group of others.
func Group(cmd *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	for _, c := range commands {
		c.Aliases = append(slices.Clone(VerbAliases[c.Name()]), c.Aliases...)
	}
	cmd.DisableFlagsInUseLine = true
	cmd.Args, cmd.RunE = cobra.ArbitraryArgs, OnlySubcommands
	cmd.AddCommand(commands...)
	return cmd
}

// OnlySubcommands runs a command that only groups others. For a mistyped subcommand,
// cobra itself would print help and succeed.
func OnlySubcommands(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return unknownCommand(cmd, args[0])
	}
	return cmd.Help()
}
