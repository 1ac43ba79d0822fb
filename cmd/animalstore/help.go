package main

import (
	"slices"

	"animalstore/internal/cli"

	"github.com/spf13/cobra"
)

// groups are the groups of commands in the root's help. Commands in none of them
// are listed last.
var groups = []struct {
	group    cobra.Group
	commands []string
}{
	{cobra.Group{ID: "server", Title: "Server Commands:"}, []string{"serve", "keys", "seed", "db"}},
	{cobra.Group{ID: "client", Title: "Client Commands:"}, []string{"pets", "inventory", "orders", "categories", "events", "webhooks", "limits", "usage", "healthcheck"}},
}

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
	cli.ArrangeHelp(root)
}
