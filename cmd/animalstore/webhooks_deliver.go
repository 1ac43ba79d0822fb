package main

import (
	"cmp"
	"iter"
	"strconv"
	"time"

	"animalstore"
	"animalstore/client"
	"animalstore/internal/cli"
	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
)

func webhooksRotateCommand(conn *connection) *cobra.Command {
	var graceText string
	var grace time.Duration
	cmd := &cobra.Command{
		Use:   "rotate ID",
		Short: "Give a webhook a new secret and print it",
		Long: `Give a webhook a new secret and print it to standard output, with nothing else.
For a grace period, events are signed with both secrets, so that the receiver
can change at any time in between.`,
		Example: `  animalstore webhooks rotate 1
  animalstore webhooks rotate 1 --grace 0s`,
		Args: cli.OneID("webhook", "webhooks"),
		PreRunE: func(*cobra.Command, []string) (err error) {
			if grace, err = terminal.ParseDuration(graceText); err != nil || grace < 0 || grace > maxServerGrace {
				return cli.Usagef("--grace must be a duration of at most 90d such as 7d, 12h or 0s, not %q", graceText)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			id := cli.IDs(args)[0]
			return conn.do(cmd, func(s session) error {
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
	cmd.Flags().StringVar(&graceText, "grace", "24h", "how long to sign with the old secret too, such as 7d, 12h or 0s")
	jsonFlag(cmd)
	return cmd
}

var deliveries = resource[animalstore.Delivery]{"delivery", "deliveries", deliveryColumns}

var deliveryColumns = []terminal.Column[animalstore.Delivery]{
	{Title: "ID", Text: func(d animalstore.Delivery) string { return decimal(d.ID) }},
	{Title: "EVENT", Text: deliveredEvent},
	{Title: "TYPE", Text: func(d animalstore.Delivery) string { return string(d.Type) }},
	{Title: "STATE", Text: func(d animalstore.Delivery) string { return string(d.State) }, Colour: deliveryColour},
	{Title: "ATTEMPTS", Text: func(d animalstore.Delivery) string { return strconv.Itoa(len(d.Attempts)) }, Drop: 2},
	{Title: "LAST RESULT", Text: lastResult, Shrink: true},
	{Title: "NEXT ATTEMPT", Time: func(d animalstore.Delivery) time.Time { return d.NextAttemptAt.Time }, Relative: true, Never: "-", Drop: 1},
	{Title: "CREATED (UTC)", Time: func(d animalstore.Delivery) time.Time { return d.CreatedAt.Time }, Drop: 3},
}

func deliveryColour(d animalstore.Delivery) terminal.Colour {
	switch d.State {
	case animalstore.DeliveryDelivered:
		return terminal.Green
	case animalstore.DeliveryPending:
		return terminal.Yellow
	}
	return terminal.Red
}

func deliveredEvent(d animalstore.Delivery) string {
	if d.EventID == nil {
		return "-" // a ping
	}
	return decimal(*d.EventID)
}

func lastResult(d animalstore.Delivery) string {
	if len(d.Attempts) == 0 {
		return "-"
	}
	return attemptResult(d.Attempts[len(d.Attempts)-1])
}

// attemptResult is the status of the response, or why there was none.
func attemptResult(a animalstore.Attempt) string {
	if a.Status != nil {
		return strconv.Itoa(*a.Status)
	}
	return cmp.Or(string(a.Error), "-")
}

func webhooksPingCommand(conn *connection) *cobra.Command {
	var eventType animalstore.EventType
	cmd := deliveries.onItem(conn, &cobra.Command{
		Use:   "ping ID",
		Short: "Send a test message to a webhook",
		Long: `Send a message of the type webhook.ping to a webhook, whatever its state, and
print the delivery. With --type, the message is one of that type of event with
sample data, whether or not the webhook gets such events. It is tried once.`,
		Example: `  animalstore webhooks ping 1
  animalstore webhooks ping 1 --type order.created`,
		Args: cli.OneID("webhook", "webhooks"),
	}, func(cmd *cobra.Command, s session, id int64) (animalstore.Delivery, error) {
		delivery, err := s.PingWebhookAs(cmd.Context(), id, cmp.Or(eventType, animalstore.WebhookPing))
		if err == nil {
			s.Note("Sending a ping. See the result with \"animalstore webhooks delivery %d %d\".", id, delivery.ID)
		}
		return delivery, err
	})
	cli.RegisterOneOf(cmd, &eventType, animalstore.EventTypes, "type", "send a sample of this type of event, such as pet.created")
	return cmd
}

func webhooksDeliveriesCommand(conn *connection) *cobra.Command {
	var q client.DeliveryQuery
	cmd := deliveries.onList(conn, &cobra.Command{
		Use:   "deliveries WEBHOOK",
		Short: "List what was sent to a webhook, the latest first",
		Long: `List the deliveries to a webhook, the latest first, with the result of the last
attempt. "delivery" shows all attempts of one, and what is sent. Deliveries are
kept for 30 days.`,
		Example: `  animalstore webhooks deliveries 1
  animalstore webhooks deliveries 1 --state failed --all --json`,
		Args: cli.OneID("webhook", "webhooks"),
	}, &listFlags{}, func(cmd *cobra.Command, s session, pageSize int) iter.Seq2[animalstore.Delivery, error] {
		q.PageSize = pageSize
		return s.ListDeliveries(cmd.Context(), cli.IDs(cmd.Flags().Args())[0], q)
	})
	cli.RegisterOneOf(cmd, &q.State, animalstore.DeliveryStates, "state", "only deliveries in this state: "+animalstore.JoinOr(animalstore.DeliveryStates))
	return cmd
}
