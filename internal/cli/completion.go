package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// CompleteFlag sets the completion of a flag. Flags without one complete to nothing.
func CompleteFlag(cmd *cobra.Command, flag string, complete cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err) // the flag doesn't exist
	}
}

// FixedValues completes to one of these.
func FixedValues[T ~string](values []T) cobra.CompletionFunc {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = string(v)
	}
	return cobra.FixedCompletions(texts, cobra.ShellCompDirectiveNoFileComp)
}

// CompleteList completes the last value of a comma-separated list.
func CompleteList[T ~string](values []T) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		before := typed[:strings.LastIndex(typed, ",")+1]
		var offered []string
		for _, v := range values {
			if !slices.Contains(strings.Split(before, ","), string(v)) {
				offered = append(offered, before+string(v))
			}
		}
		return offered, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// CompleteFiles is for an argument or a flag that is a file.
func CompleteFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}
