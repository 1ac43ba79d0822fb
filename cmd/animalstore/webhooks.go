package main

import (
	"cmp"
	"fmt"
	"iter"
	"strings"
	"time"

	"animalstore"
	"animalstore/client"
	"animalstore/internal/cli"
	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
)

func webhooksCommand() *cobra.Command {
	var conn connection
	cmd := &cobra.Command{
		Use:   "webhooks",
		Short: "Send events to other programs, and check their delivery",
		Long: `Manage webhooks: the addresses that a server sends events to, signed as in
Standard Webhooks. See what was delivered and what failed, and send it again.
"listen" tries out a receiver on your own machine.

All commands except "listen" need a key with the permission admin.

` + keyHelp,
		Example: `  animalstore webhooks create --to https://example.com/hook --types 'pet.*'
  animalstore webhooks deliveries 1 --state failed
  animalstore webhooks listen --forward-to http://localhost:3000/hook`,
	}
	conn.register(cmd, cmd.PersistentFlags())
	return cli.Group(cmd, webhooksListCommand(&conn), webhooksShowCommand(&conn), webhooksCreateCommand(&conn),
		webhooksSetCommand(&conn), webhooksRemoveCommand(&conn), webhooksRotateCommand(&conn), webhooksPingCommand(&conn),
		webhooksDeliveriesCommand(&conn), webhooksDeliveryCommand(&conn), webhooksRetryCommand(&conn), webhooksListenCommand(&conn))
}

var webhooks = resource[animalstore.Webhook]{"webhook", "webhooks", webhookColumns}

var webhookColumns = []terminal.Column[animalstore.Webhook]{
	{Title: "ID", Text: func(w animalstore.Webhook) string { return decimal(w.ID) }},
	{Title: "URL", Text: func(w animalstore.Webhook) string { return w.URL }},
	stateColumn("STATE", func(w animalstore.Webhook) string { return string(w.State) }),
	{Title: "TYPES", Text: func(w animalstore.Webhook) string { return strings.Join(w.Types.List(), ",") }},
	{Title: "LAST DELIVERED", Time: func(w animalstore.Webhook) time.Time { return w.LastDeliveredAt.Time }, Relative: true},
	{Title: "LAST FAILED", Time: func(w animalstore.Webhook) time.Time { return w.LastFailedAt.Time }, Relative: true},
	{Title: "REASON", Text: func(w animalstore.Webhook) string { return cmp.Or(string(w.DisabledReason), "-") }},
	{Title: "DESCRIPTION", Text: func(w animalstore.Webhook) string { return w.Description }},
}

func webhooksListCommand(conn *connection) *cobra.Command {
	return webhooks.onList(conn, &cobra.Command{
		Use:   "list",
		Short: "List webhooks, newest first, without their secrets",
		Example: `  animalstore webhooks list
  animalstore webhooks list --json`,
	}, &listFlags{}, func(cmd *cobra.Command, s invocation, pageSize int) iter.Seq2[animalstore.Webhook, error] {
		return s.ListWebhooks(cmd.Context(), client.PageSize(pageSize))
	})
}

func webhooksShowCommand(conn *connection) *cobra.Command {
	return webhooks.onItem(conn, &cobra.Command{
		Use:   "show ID",
		Short: "Show one webhook, without its secret",
		Example: `  animalstore webhooks show 1
  animalstore webhooks show 1 --json`,
	}, func(cmd *cobra.Command, s invocation, id int64) (animalstore.Webhook, error) {
		return s.GetWebhook(cmd.Context(), id)
	})
}

// webhookFlags are the settings of a webhook. The receiver isn't --url: that is the
// server.
type webhookFlags struct {
	to, description string
	types           []string
}

func (f *webhookFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.to, "to", "", "`address` that events are sent to, such as https://example.com/hook")
	cmd.Flags().StringVar(&f.description, "description", "", "what it is for")
	registerEventTypes(cmd, &f.types)
}

// registerEventTypes adds the flag --types.
func registerEventTypes(cmd *cobra.Command, types *[]string) {
	cmd.Flags().StringSliceVar(types, "types", nil, "comma-separated types of events, such as pet.created, or pet.* for all of pets (default "+string(animalstore.DefaultEventPatterns)+")")
	cli.CompleteFlag(cmd, "types", cli.CompleteList(animalstore.EventTypes))
}

// eventPatterns reads --types. It is empty if the flag isn't given.
func eventPatterns(cmd *cobra.Command, types []string) (animalstore.EventPatterns, error) {
	if !cmd.Flag("types").Changed {
		return "", nil
	}
	patterns, err := animalstore.NewEventPatterns(types)
	if err != nil {
		return "", cli.Usagef("--%s", err.(*animalstore.Error).Message)
	}
	return patterns, nil
}

func webhooksCreateCommand(conn *connection) *cobra.Command {
	var f webhookFlags
	var in animalstore.NewWebhook
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create a webhook and print its secret",
		Long: `Create a webhook and print its secret to standard output, with nothing else. It
is shown only once. The receiver verifies with it that events come from this
server.

The address must be https and lead to the public internet, unless the server
allows further networks.`,
		Example: `  animalstore webhooks create --to https://example.com/hook
  animalstore webhooks create --to https://example.com/hook \
      --types 'pet.*,order.created' --description 'the shop window'`,
		Args: cli.NoArguments,
		PreRunE: func(cmd *cobra.Command, _ []string) (err error) {
			if f.to == "" {
				return cli.Usagef("give the address to send events to with --to, such as https://example.com/hook")
			}
			in = animalstore.NewWebhook{URL: f.to, Description: f.description}
			in.Types, err = eventPatterns(cmd, f.types)
			return err
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return conn.do(cmd, func(s invocation) error {
				created, err := s.CreateWebhook(cmd.Context(), in)
				if err != nil {
					return err
				}
				s.Note("Created webhook %d: %s are sent to %s. Store the secret safely: it isn't shown again.", created.ID, strings.Join(created.Types.List(), ", "), terminal.Visible(created.URL))
				return printSecret(s.Printer, "webhook", created.ID, created.Secret, created)
			})
		},
	}
	f.register(cmd)
	jsonFlag(cmd)
	return cmd
}

// settableStates are the states of a webhook that people choose.
var settableStates = []animalstore.WebhookState{animalstore.WebhookActive, animalstore.WebhookPaused}

func webhooksSetCommand(conn *connection) *cobra.Command {
	var f webhookFlags
	var state animalstore.WebhookState
	var patch animalstore.WebhookPatch
	cmd := webhooks.onItem(conn, &cobra.Command{
		Use:   "set ID",
		Short: "Change, pause or resume a webhook",
		Long: `Change a webhook, and print it. Set the state to active to resume a webhook that
is paused, or that the server disabled because its receiver failed for days.
Events that occurred while it was paused or disabled are never delivered.`,
		Example: `  animalstore webhooks set 1 --types 'pet.*'
  animalstore webhooks set 1 --state paused`,
		PreRunE: func(cmd *cobra.Command, _ []string) (err error) {
			patch, err = f.patch(cmd, state)
			return err
		},
	}, func(cmd *cobra.Command, s invocation, id int64) (animalstore.Webhook, error) {
		webhook, err := s.UpdateWebhook(cmd.Context(), id, patch)
		if err == nil {
			s.Note("Changed webhook %d: it is %s.", webhook.ID, webhook.State)
		}
		return webhook, err
	})
	f.register(cmd)
	cmd.Flag("types").Usage = "its new comma-separated types of events"
	cli.RegisterOneOf(cmd, &state, settableStates, "state", "its new state: "+animalstore.JoinOr(settableStates))
	return cmd
}

func (f *webhookFlags) patch(cmd *cobra.Command, state animalstore.WebhookState) (animalstore.WebhookPatch, error) {
	var patch animalstore.WebhookPatch
	types, err := eventPatterns(cmd, f.types)
	if err != nil {
		return patch, err
	}
	if types != "" {
		patch.Types = &types
	}
	if cmd.Flag("to").Changed {
		patch.URL = &f.to
	}
	if cmd.Flag("description").Changed {
		patch.Description = &f.description
	}
	if state != "" {
		patch.State = &state
	}
	if patch == (animalstore.WebhookPatch{}) {
		return patch, cli.Usagef("nothing to change: use --to, --types, --description or --state")
	}
	return patch, cli.NotEmpty(cmd, "to")
}

func webhooksRemoveCommand(conn *connection) *cobra.Command {
	cmd := webhooks.onItem(conn, &cobra.Command{
		Use:   "remove ID",
		Short: "Remove a webhook permanently",
		Long: `Remove a webhook with its deliveries permanently, and print it. To stop it for a
while, pause it instead. On a terminal, you are asked for confirmation.`,
		Example: "  animalstore webhooks remove 1 --yes",
	}, func(cmd *cobra.Command, s invocation, id int64) (animalstore.Webhook, error) {
		webhook, err := s.GetWebhook(cmd.Context(), id)
		if err == nil {
			err = requireConfirmation(cmd, fmt.Sprintf("Remove webhook %d (%s) permanently?", id, terminal.Visible(webhook.URL)))
		}
		if err == nil {
			err = s.DeleteWebhook(cmd.Context(), id)
		}
		if err == nil {
			s.Note("Removed webhook %d.", id)
		}
		return webhook, err
	})
	yesFlag(cmd)
	return cmd
}

func webhooksRotateCommand(conn *connection) *cobra.Command {
	grace := defaultGrace
	cmd := &cobra.Command{
		Use:   "rotate ID",
		Short: "Give a webhook a new secret and print it",
		Long: `Give a webhook a new secret and print it to standard output, with nothing else.
For a grace period, events are signed with both secrets, so that the receiver
can switch at any time during it.`,
		Example: `  animalstore webhooks rotate 1
  animalstore webhooks rotate 1 --grace 0s`,
		Args: cli.OneID("webhook", "webhooks"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id := cli.IDs(args)[0]
			return conn.do(cmd, func(s invocation) error {
				rotated, err := s.RotateWebhook(cmd.Context(), id, grace)
				if err != nil {
					return err
				}
				old := "deliveries are also signed with the old one until " + animalstore.At(time.Now().Add(grace)).String()
				if grace == 0 {
					old = "the old one is no longer used"
				}
				s.Note("Webhook %d has a new secret; %s. Store the new one safely: it isn't shown again.", id, old)
				return printSecret(s.Printer, "webhook", id, rotated.Secret, rotated)
			})
		},
	}
	cli.RegisterDuration(cmd, &grace, "grace", "how long to sign with the old secret too: a `duration` such as 7d, 12h or 0s")
	jsonFlag(cmd)
	return cmd
}
