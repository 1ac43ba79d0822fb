package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"animalstore"
	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// variable is the environment variable that sets a flag.
func variable(flag string) string {
	return "ANIMALSTORE_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// readEnvironment sets flags that were not given from the environment.
func readEnvironment(cmd *cobra.Command) error {
	var err error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		name := variable(f.Name)
		value, ok := os.LookupEnv(name)
		if f.Changed || !ok || err != nil {
			return
		}
		if e := cmd.Flags().Set(f.Name, value); e != nil {
			err = usageError{fmt.Errorf("the environment variable %s: %w", name, explainFlagError(e))}
		}
		if f.Annotations == nil {
			f.Annotations = map[string][]string{}
		}
		f.Annotations[fromEnvironment] = []string{name}
	})
	return err
}

// fromEnvironment marks a flag that was set by the environment.
const fromEnvironment = "animalstore_from_environment"

// given reports whether a flag is in the command line itself.
func given(cmd *cobra.Command, name string) bool {
	f := cmd.Flag(name)
	return f != nil && f.Changed && f.Annotations[fromEnvironment] == nil
}

// wanted is the error of a flag's Set: it says what the value must be.
type wanted string

func (w wanted) Error() string { return "must be " + string(w) }

// oneOf is a flag with a fixed set of values.
type oneOf[T ~string] struct {
	value    *T
	possible []T
	name     string // of the value, in help
}

func (o oneOf[T]) String() string { return string(*o.value) }
func (o oneOf[T]) Type() string   { return o.name }

func (o oneOf[T]) Set(s string) error {
	if !slices.Contains(o.possible, T(s)) {
		return wanted(animalstore.JoinOr(o.possible))
	}
	*o.value = T(s)
	return nil
}

// idList is a flag for ids. It may be repeated.
type idList []int64

func (l *idList) String() string {
	texts := make([]string, len(*l))
	for i, id := range *l {
		texts[i] = decimal(id)
	}
	return strings.Join(texts, ",")
}

func (l *idList) Type() string { return "ids" }

func (l *idList) Set(s string) error {
	for part := range strings.SplitSeq(s, ",") {
		id, ok := parseInteger(strings.TrimSpace(part))
		if !ok || id < 1 {
			return wanted("ids: positive numbers separated by commas")
		}
		*l = append(*l, id)
	}
	return nil
}

// explainFlag is the error for a flag that can't be read, with what to do next.
func explainFlag(cmd *cobra.Command, err error) error {
	hint := fmt.Sprintf("See %q", cmd.CommandPath()+" --help")
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || unknown.GetSpecifiedShortnames() != "" {
		return usageError{fmt.Errorf("%w. %s", explainFlagError(err), hint)}
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	if nearest := terminal.Nearest(unknown.GetSpecifiedName(), names); nearest != "" {
		hint = fmt.Sprintf("Did you mean --%s?", nearest)
	}
	return usageError{fmt.Errorf("%q has no flag --%s. %s", cmd.CommandPath(), unknown.GetSpecifiedName(), hint)}
}

// explainFlagError replaces an error of pflag, which quotes strconv and csv, by
// one for people.
func explainFlagError(err error) error {
	var (
		invalid *pflag.InvalidValueError
		missing *pflag.ValueRequiredError
		unknown *pflag.NotExistError
	)
	switch {
	case errors.As(err, &invalid):
		f := invalid.GetFlag()
		return fmt.Errorf("--%s must be %s, not %q", f.Name, wantedValue(f, err), invalid.GetValue())
	case errors.As(err, &missing):
		return fmt.Errorf("--%s needs a value", missing.GetFlag().Name)
	case errors.As(err, &unknown) && isNumber(unknown.GetSpecifiedShortnames()):
		return fmt.Errorf("-%s looks like a flag: write -- before a negative id", unknown.GetSpecifiedShortnames())
	}
	return err
}

func wantedValue(f *pflag.Flag, err error) string {
	var want wanted
	switch {
	case errors.As(err, &want):
		return string(want)
	case errors.Is(err, strconv.ErrRange):
		return "a number closer to 0"
	}
	switch kind := f.Value.Type(); kind {
	case "bool":
		return "true or false"
	case "stringSlice":
		return "a comma-separated list"
	default:
		if strings.HasPrefix(kind, "int") || strings.HasPrefix(kind, "uint") {
			return "a whole number"
		}
		return "a " + kind
	}
}

func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
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

// verbAliases are other spellings of the verbs that all resources share.
var verbAliases = map[string][]string{
	"list":   {"ls"},
	"show":   {"get"},
	"create": {"add"},
	"remove": {"delete", "rm"},
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

// unknownCommand is the error for a mistyped subcommand.
func unknownCommand(cmd *cobra.Command, name string) error {
	for verb, why := range cmd.Annotations {
		if name == verb || slices.Contains(verbAliases[verb], name) {
			return usageError{errors.New(why)}
		}
	}
	var names, aliases []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names, aliases = append(names, c.Name()), append(aliases, c.Aliases...)
		}
	}
	hint := fmt.Sprintf("See %q", cmd.CommandPath()+" --help")
	if nearest := terminal.Nearest(name, append(names, aliases...)); nearest != "" {
		hint = fmt.Sprintf("Did you mean %q?", cmd.CommandPath()+" "+nearest)
	}
	return usageError{fmt.Errorf("%q has no command %q. %s", cmd.CommandPath(), name, hint)}
}
