package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// ArrangeHelp adds a command help to root, and wraps the help of all commands.
func ArrangeHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	if help, _, err := root.Find([]string{"help"}); err == nil {
		help.RunE = func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err == nil && len(rest) > 0 { // cobra would succeed
				err = unknownCommand(cmd, rest[0])
			}
			if err != nil {
				return err
			}
			cmd.InitDefaultHelpFlag()
			return cmd.Help()
		}
		help.Short = "Show the help of a command"
		help.Long = "Show the help of a command, like its flag --help."
		help.Example = "  animalstore help\n  animalstore help keys create"
	}
	root.SetUsageTemplate(usageTemplate(root.UsageTemplate()))
}

// usageTemplate fixes cobra's template: lines that are too long, and groups of
// commands that are shown as if they could be run themselves.
func usageTemplate(cobras string) string {
	return strings.NewReplacer(
		"{{if .Runnable}}", "{{if and .Runnable (not .HasAvailableSubCommands)}}",
		".FlagUsages |", ".FlagUsagesWrapped 80 |",
		"Additional Commands:", "Other Commands:",
		"for more information about a command", "to learn about a command",
	).Replace(cobras)
}
