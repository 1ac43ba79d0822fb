package main

import (
	"fmt"
	"slices"
	"strings"

	"animalstore"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var shells = []string{"bash", "zsh", "fish", "powershell"}

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

// flagValues are the values of flags with these names, in every command.
var flagValues = map[string][]string{
	"plan":        names(animalstore.Plans),
	"environment": {string(animalstore.Production), string(animalstore.Staging)},
	"permissions": (animalstore.Read | animalstore.Write | animalstore.Admin).Names(),
	"log-format":  {"text", "json"},
}

func names[T ~string](values []T) []string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = string(v)
	}
	return texts
}

// completeValues sets the completion of the flags of a command and its
// subcommands. For flags and arguments that aren't files it turns the completion
// of file names off.
func completeValues(cmd *cobra.Command) {
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		values, known := flagValues[f.Name]
		if fixed, ok := f.Value.(interface{ values() []string }); ok {
			values, known = fixed.values(), true
		}
		complete := cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
		if f.Name == "permissions" {
			complete = completeList(values)
		}
		if known || f.Name != "cacert" && cmd.Name() != "serve" {
			// It fails only for a flag that already has one.
			_ = cmd.RegisterFlagCompletionFunc(f.Name, complete)
		}
	})
	if cmd.ValidArgsFunction == nil && len(cmd.ValidArgs) == 0 {
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	for _, sub := range cmd.Commands() {
		completeValues(sub)
	}
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
