package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// FlagError is the error for a flag that can't be read, with what to do next.
func FlagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || isNumber(unknown.GetSpecifiedShortnames()) {
		return Usagef("%w. See %q", valueError(err), cmd.CommandPath()+" --help")
	}
	dashes, name := "--", unknown.GetSpecifiedName()
	if letters := unknown.GetSpecifiedShortnames(); letters != "" {
		dashes = "-"
		name, _, _ = strings.Cut(letters, "=")
	}
	hint := fmt.Sprintf("See %q", cmd.CommandPath()+" --help")
	if meant := nearestFlag(cmd, name); meant != "" {
		hint = fmt.Sprintf("Did you mean --%s?", meant)
	}
	return Usagef("%q has no flag %s%s. %s", cmd.CommandPath(), dashes, name, hint)
}

// nearestFlag returns the flag that was probably meant by a name, or "".
func nearestFlag(cmd *cobra.Command, name string) (nearest string) {
	name = strings.ToLower(strings.ReplaceAll(name, "_", "-"))
	// Of a short name, most letters have to be right.
	least := min(len(name)/2, maxTypos) + 1
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		typos := countTypos(name, f.Name)
		if len(name) >= 3 && strings.HasPrefix(f.Name, name) {
			typos = min(typos, 1)
		}
		if !f.Hidden && typos < least {
			nearest, least = f.Name, typos
		}
	})
	return nearest
}

// maxTypos is how many letters of a flag or a command may be wrong.
const maxTypos = 2

// countTypos returns how many letters have to be added, removed or replaced to make one
// name the other (their Levenshtein distance).
func countTypos(a, b string) int {
	row := make([]int, len(b)+1) // of the beginning of a and each beginning of b
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := before
			if a[i] != b[j] {
				replaced++
			}
			before = row[j+1]
			row[j+1] = min(replaced, before+1, row[j]+1)
		}
	}
	return row[len(b)]
}

// valueError rewords an error of pflag, which quotes strconv and csv, for people.
func valueError(err error) error {
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

// VerbAliases are other spellings of the verbs that all resources share.
var VerbAliases = map[string][]string{
	"list":   {"ls"},
	"show":   {"get"},
	"create": {"add"},
	"remove": {"delete", "rm"},
}

// unknownCommand is the error for a mistyped subcommand.
func unknownCommand(cmd *cobra.Command, name string) error {
	hint := fmt.Sprintf("See %q", cmd.CommandPath()+" --help")
	cmd.SuggestionsMinimumDistance = maxTypos
	if meant := cmd.SuggestionsFor(name); len(meant) > 0 {
		hint = fmt.Sprintf("Did you mean %q?", cmd.CommandPath()+" "+meant[0])
	}
	return Usagef("%q has no command %q. %s", cmd.CommandPath(), name, hint)
}
