// Command animalstore serves a store's pets over HTTP, manages its keys, and
// calls such a server on behalf of people and scripts.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"animalstore/internal/cli"

	"github.com/spf13/cobra"
)

// generators add the commands that only release builds have: see man.go.
var generators []func() *cobra.Command

func main() {
	ctx := cli.ContextWithSignals()
	err := newCommand().ExecuteContext(ctx)
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "animalstore:", message(err))
	var got cli.SignalError
	if errors.As(context.Cause(ctx), &got) {
		os.Exit(got.ExitCode())
	}
	os.Exit(exitCode(err))
}

func newCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "animalstore",
		Short: "A store's pets over HTTP",
		Long: `animalstore manages a store's pets and orders and serves them over HTTP.

Start a server with "animalstore serve". The first start prints a key. Put it in
ANIMALSTORE_API_KEY to use the client commands:

  export ANIMALSTORE_API_KEY=ast_live_...
  animalstore pets create --name Rex --category 7
  animalstore pets list

Lists are tables on a terminal and tab-separated lines in a pipe; --json prints
JSON. NO_COLOR is respected.

Every flag can also be set in the environment: --url is ANIMALSTORE_URL,
--log-format is ANIMALSTORE_LOG_FORMAT, and so on. With _FILE at its end, the
variable names a file with the value: ANIMALSTORE_DATABASE_FILE keeps a password
out of the environment.

Exit codes: 0 success, 1 error, 2 incorrect usage, 4 key missing or refused,
5 not found, 6 rate limited, 130 stopped by Ctrl-C.`,
		Version:       versionString(),
		Args:          cobra.ArbitraryArgs,
		RunE:          cli.OnlySubcommands,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return cli.ReadEnvironment(cmd)
		},
	}
	root.SetFlagErrorFunc(cli.FlagError)
	root.SetVersionTemplate("animalstore {{.Version}}\n")
	root.Flags().BoolP("version", "v", false, "print the version")
	root.AddCommand(serveCommand(), keysCommand(), seedCommand(), dbCommand(), healthcheckCommand(), versionCommand())
	root.AddCommand(petsCommand(), inventoryCommand(), ordersCommand(), categoriesCommand(), eventsCommand(), webhooksCommand(), limitsCommand(), usageCommand(), failuresCommand(), mcpCommand(), completionCommand())
	for _, command := range generators {
		root.AddCommand(command())
	}
	arrangeHelp(root)
	root.CompletionOptions.DisableDefaultCmd = true
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	return root
}

// groups are the groups of commands in the root's help. Commands in none of them
// are listed last.
var groups = []struct {
	group    cobra.Group
	commands []string
}{
	{cobra.Group{ID: "server", Title: "Server Commands:"}, []string{"serve", "keys", "seed", "db"}},
	{cobra.Group{ID: "client", Title: "Client Commands:"}, []string{"pets", "inventory", "orders", "categories", "events", "webhooks", "limits", "usage", "failures", "mcp", "healthcheck"}},
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
