package main

import (
	"slices"
	"strings"

	"animalstore/internal/commandline"
	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
)

// groups are the groups of commands in the root's help. Commands in none of them
// are listed last.
var groups = []struct {
	group    cobra.Group
	commands []string
}{
	{cobra.Group{ID: "server", Title: "Server Commands:"}, []string{"serve", "keys", "seed", "db"}},
	{cobra.Group{ID: "client", Title: "Client Commands:"}, []string{"pets", "orders", "categories", "events", "webhooks", "limits", "usage", "healthcheck"}},
}

// helpWidth is the maximum width of help, in columns.
const helpWidth = 80

// arrangeHelp groups the commands and wraps their help.
func arrangeHelp(root *cobra.Command) {
	for _, g := range groups {
		root.AddGroup(&g.group)
		for _, cmd := range root.Commands() {
			if slices.Contains(g.commands, cmd.Name()) {
				cmd.GroupID = g.group.ID
			}
		}
	}
	root.InitDefaultHelpCmd()
	if help, _, err := root.Find([]string{"help"}); err == nil {
		help.RunE = func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err == nil && len(rest) > 0 { // cobra would succeed
				err = usageError{commandline.UnknownCommand(cmd, rest[0])}
			}
			if err != nil {
				return err
			}
			cmd.InitDefaultHelpFlag()
			return cmd.Help()
		}
		help.Short = "Explain a command"
		help.Long = "Explain a command, like its flag --help."
		help.Example = "  animalstore help\n  animalstore help keys create"
	}
	cobra.AddTemplateFunc("wrapExample", func(example string) string { return terminal.WrapCommands(example, helpWidth) })
	root.SetUsageTemplate(usageTemplate(root.UsageTemplate()))
}

// usageTemplate fixes cobra's template: lines that are too long, and groups of
// commands that are shown as if they could be run themselves.
func usageTemplate(cobras string) string {
	return strings.NewReplacer(
		"{{if .Runnable}}", "{{if and .Runnable (not .HasAvailableSubCommands)}}",
		".FlagUsages |", ".FlagUsagesWrapped 80 |",
		"{{.Example}}", "{{wrapExample .Example}}",
		"Additional Commands:", "Other Commands:",
		"for more information about a command", "to learn about a command",
	).Replace(cobras)
}
