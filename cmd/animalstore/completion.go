package main

import (
	"slices"

	"animalstore"
	"animalstore/internal/cli"

	"github.com/spf13/cobra"
)

var (
	shells       = []string{"bash", "zsh", "fish", "powershell"}
	environments = []animalstore.Environment{animalstore.Production, animalstore.Staging}
)

func completionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print a shell completion script",
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
				return cli.Usagef("give a shell: %s", animalstore.JoinOr(shells))
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
