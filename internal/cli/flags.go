// Package cli is what commands share: flags that the environment can set, checks of
// arguments, completion, help, signals, and errors that say what a value must be or which
// flag or command was meant. It names no flags and knows nothing about the store.
package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"animalstore"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Variable is the environment variable that sets a flag.
func Variable(flag string) string {
	return "ANIMALSTORE_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// LookupEnvironment returns the value of an environment variable: the content of the file
// that NAME_FILE names, or else NAME itself. Secrets in files stay out of the process's
// environment, which its children and crash reports can see. The file takes precedence,
// because an image or a package may set NAME.
func LookupEnvironment(name string) (value string, ok bool, err error) {
	file := os.Getenv(name + "_FILE")
	if file == "" {
		value, ok = os.LookupEnv(name)
		return value, ok, nil
	}
	content, err := os.ReadFile(file)
	if err == nil && len(bytes.TrimSpace(content)) == 0 {
		err = fmt.Errorf("%s is empty", file)
	}
	if err != nil {
		return "", false, Usagef("the environment variable %s_FILE: %w", name, err)
	}
	return strings.TrimRight(string(content), "\r\n"), true, nil
}

// ReadEnvironment sets flags that were not given from the environment.
func ReadEnvironment(cmd *cobra.Command) error {
	var err error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Changed || err != nil {
			return
		}
		name := Variable(f.Name)
		value, ok, e := LookupEnvironment(name)
		if !ok {
			err = e
			return
		}
		if e := cmd.Flags().Set(f.Name, value); e != nil {
			err = Usagef("the environment variable %s: %w", name, valueError(e))
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

// Given reports whether a flag is in the command line itself.
func Given(cmd *cobra.Command, name string) bool {
	f := cmd.Flag(name)
	return f != nil && f.Changed && f.Annotations[fromEnvironment] == nil
}

// wanted is the error of a flag's Set: it says what the value must be.
type wanted string

func (w wanted) Error() string { return "must be " + string(w) }

// RegisterOneOf adds a flag with a fixed set of values. In help, the value has the name of
// the flag.
func RegisterOneOf[T ~string](cmd *cobra.Command, value *T, possible []T, flag, usage string) {
	cmd.Flags().Var(oneOf[T]{value, possible, flag}, flag, usage)
	CompleteFlag(cmd, flag, FixedValues(possible))
}

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

// RegisterDuration adds a flag for a duration of 0 or more. value has the default: days or 0.
func RegisterDuration(cmd *cobra.Command, value *time.Duration, flag, usage string) {
	if *value > 0 {
		usage += fmt.Sprintf(" (default %gd)", value.Hours()/24)
	}
	cmd.Flags().Func(flag, usage, func(s string) error {
		d, err := ParseDuration(s)
		if err != nil || d < 0 {
			return wanted("a duration such as 7d, 12h or 30m")
		}
		*value = d
		return nil
	})
}

// RegisterIDs adds a flag for comma-separated ids, which may be repeated.
func RegisterIDs(cmd *cobra.Command, ids *[]int64, flag, usage string) {
	cmd.Flags().Func(flag, usage, func(s string) error {
		for part := range strings.SplitSeq(s, ",") {
			id, ok := ParseInteger(strings.TrimSpace(part))
			if !ok || id < 1 {
				return wanted("ids: positive numbers separated by commas")
			}
			*ids = append(*ids, id)
		}
		return nil
	})
}

// ParseDuration parses a duration in Go's notation, or in days, such as 90d.
func ParseDuration(s string) (time.Duration, error) {
	days, ok := strings.CutSuffix(s, "d")
	if !ok {
		return time.ParseDuration(s)
	}
	n, err := strconv.Atoi(days)
	if err != nil || n < 0 || n > 100*366 {
		return 0, errors.New("not a number of days")
	}
	return time.Duration(n) * 24 * time.Hour, nil
}
