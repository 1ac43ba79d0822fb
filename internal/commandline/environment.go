// Package commandline is what our commands have in common: flags that the environment can
// set, flags with a few possible values or for lists, arguments, completion, help,
// confirmation, signals, and errors that say what a value must be or which flag or command
// was meant. It knows nothing about the store.
package commandline

import (
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Variable is the environment variable that sets a flag.
func Variable(flag string) string {
	return "ANIMALSTORE_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// ReadEnvironment sets flags that were not given from the environment.
func ReadEnvironment(cmd *cobra.Command) error {
	var err error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		name := Variable(f.Name)
		value, ok := os.LookupEnv(name)
		if f.Changed || !ok || err != nil {
			return
		}
		if e := cmd.Flags().Set(f.Name, value); e != nil {
			err = Usagef("the environment variable %s: %w", name, explainValue(e))
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
