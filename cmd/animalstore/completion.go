package main

import (
	"fmt"
	"slices"
	"strings"

	"animalstore"

	"github.com/spf13/cobra"
)

var (
	shells       = []string{"bash", "zsh", "fish", "powershell"}
	environments = []animalstore.Environment{animalstore.Production, animalstore.Staging}
)

func completionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print a script for completion in your shell",
		Long: `Print a script that lets your shell complete the commands, flags and values of
animalstore. SHELL is ` + animalstore.JoinOr(shells) + `. Put the script where
your shell looks for such scripts, and start a new shell. In zsh that is a
directory in $fpath, and in PowerShell your profile. In bash it needs the
package bash-completion.`,
		Example: `  animalstore completion bash >> ~/.bash_completion
  animalstore completion zsh > ~/.zfunc/_animalstore
  animalstore completion fish > ~/.config/fish/completions/animalstore.fish`,
		ValidArgs: shells,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || !slices.Contains(shells, args[0]) {
				return usageError{fmt.Errorf("name the shell: %s", animalstore.JoinOr(shells))}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			root, out := cmd.Root(), cmd.OutOrStdout()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(out, true)
			case "zsh":
				return root.GenZshCompletion(out)
			case "fish":
				return root.GenFishCompletion(out, true)
			}
			return root.GenPowerShellCompletionWithDesc(out)
		},
	}
}

// registerOneOf adds a flag with a fixed set of values. The value is called like the
// flag.
func registerOneOf[T ~string](cmd *cobra.Command, value *T, possible []T, flag, usage string) {
	cmd.Flags().Var(oneOf[T]{value, possible, flag}, flag, usage)
	completeFlag(cmd, flag, fixedValues(possible))
}

// completeFlag sets the completion of a flag. Flags without one complete to nothing.
func completeFlag(cmd *cobra.Command, flag string, complete cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err) // the flag doesn't exist
	}
}

func fixedValues[T ~string](values []T) cobra.CompletionFunc {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = string(v)
	}
	return cobra.FixedCompletions(texts, cobra.ShellCompDirectiveNoFileComp)
}

// completeList completes the last value of a comma-separated list.
func completeList(values []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		before := typed[:strings.LastIndex(typed, ",")+1]
		var offered []string
		for _, v := range values {
			if !slices.Contains(strings.Split(before, ","), v) {
				offered = append(offered, before+v)
			}
		}
		return offered, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// completeFiles is for an argument or a flag that is a file.
func completeFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}
