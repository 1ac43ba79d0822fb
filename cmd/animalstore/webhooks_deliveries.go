package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"animalstore"
	"animalstore/client"
	"animalstore/internal/cli"
	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
)

var deliveries = resource[animalstore.Delivery]{"delivery", "deliveries", deliveryColumns}

var deliveryColumns = []terminal.Column[animalstore.Delivery]{
	{Title: "ID", Text: func(d animalstore.Delivery) string { return decimal(d.ID) }},
	{Title: "EVENT", Text: deliveredEvent},
	{Title: "TYPE", Text: func(d animalstore.Delivery) string { return string(d.Type) }},
	stateColumn("STATE", func(d animalstore.Delivery) string { return string(d.State) }),
	{Title: "LAST RESULT", Text: lastResult},
	{Title: "NEXT ATTEMPT", Time: func(d animalstore.Delivery) time.Time { return d.NextAttemptAt.Time }, Relative: true, Never: "-"},
	{Title: "ATTEMPTS", Text: func(d animalstore.Delivery) string { return strconv.Itoa(len(d.Attempts)) }},
	{Title: "CREATED (UTC)", Time: func(d animalstore.Delivery) time.Time { return d.CreatedAt.Time }},
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
		Long: `Send a message of the type webhook.ping to a webhook in any state, and print the
delivery. With --type, send a sample event of that type instead, even if the
webhook doesn't get such events. It is tried once.`,
		Example: `  animalstore webhooks ping 1
  animalstore webhooks ping 1 --type order.created`,
		Args: cli.OneID("webhook", "webhooks"),
	}, func(cmd *cobra.Command, s invocation, id int64) (animalstore.Delivery, error) {
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
	var q animalstore.DeliveryQuery
	cmd := deliveries.onList(conn, &cobra.Command{
		Use:   "deliveries WEBHOOK",
		Short: "List what was sent to a webhook, newest first",
		Long: `List the deliveries to a webhook, newest first, with the result of the last
attempt. "delivery" shows all attempts of one, and what is sent. Deliveries are
kept for 30 days.`,
		Example: `  animalstore webhooks deliveries 1
  animalstore webhooks deliveries 1 --state failed --all --json`,
		Args: cli.OneID("webhook", "webhooks"),
	}, &listFlags{}, func(cmd *cobra.Command, s invocation, pageSize int) iter.Seq2[animalstore.Delivery, error] {
		return s.ListDeliveries(cmd.Context(), cli.IDs(cmd.Flags().Args())[0], q, client.PageSize(pageSize))
	})
	cli.RegisterOneOf(cmd, &q.State, animalstore.DeliveryStates, "state", "only deliveries in this state: "+animalstore.JoinOr(animalstore.DeliveryStates))
	return cmd
}

// deliveryArguments checks the ids of a webhook and of a delivery to it.
func deliveryArguments(_ *cobra.Command, args []string) error {
	if len(args) != 2 {
		return cli.Usagef(`give the ids of the webhook and the delivery: "animalstore webhooks deliveries WEBHOOK" shows them`)
	}
	err := cli.CheckID(args[0], "webhooks")
	if _, ok := cli.ParseInteger(args[1]); err == nil && !ok {
		err = cli.Usagef("%q isn't a valid id: \"animalstore webhooks deliveries %s\" shows the ids", args[1], args[0])
	}
	return err
}

// deliveryIDs are the ids in arguments that passed deliveryArguments.
func deliveryIDs(args []string) (webhook, delivery int64) {
	webhook, _ = cli.ParseInteger(args[0])
	delivery, _ = cli.ParseInteger(args[1])
	return webhook, delivery
}

var sent = resource[animalstore.DeliveryWithBody]{"delivery", "deliveries", sentColumns()}

// sentColumns are the columns of a delivery, and the body.
func sentColumns() (columns []terminal.Column[animalstore.DeliveryWithBody]) {
	for _, c := range deliveryColumns {
		adapted := terminal.Column[animalstore.DeliveryWithBody]{Title: c.Title, Never: c.Never, Relative: c.Relative}
		if c.Text != nil {
			adapted.Text = func(d animalstore.DeliveryWithBody) string { return c.Text(d.Delivery) }
		}
		if c.Time != nil {
			adapted.Time = func(d animalstore.DeliveryWithBody) time.Time { return c.Time(d.Delivery) }
		}
		if c.Colour != nil {
			adapted.Colour = func(d animalstore.DeliveryWithBody) terminal.Colour { return c.Colour(d.Delivery) }
		}
		columns = append(columns, adapted)
	}
	body := func(d animalstore.DeliveryWithBody) string { return string(d.Body) }
	return append(columns, terminal.Column[animalstore.DeliveryWithBody]{Title: "BODY", Text: body})
}

func webhooksDeliveryCommand(conn *connection) *cobra.Command {
	print := func(cmd *cobra.Command, s invocation, args []string, columns []terminal.Column[animalstore.DeliveryWithBody]) error {
		webhook, id := deliveryIDs(args)
		delivery, err := s.GetDelivery(cmd.Context(), webhook, id)
		switch {
		case err != nil:
			return err
		case s.JSON || !s.Screen.Terminal || cmd.Flag("columns").Changed:
			return terminal.PrintItem(s.Printer, delivery, columns)
		}
		return printSent(s.Printer, delivery)
	}
	return sent.onServer(conn, &cobra.Command{
		Use:   "delivery WEBHOOK DELIVERY",
		Short: "Show what is sent to a webhook, and every attempt",
		Long: `Show one delivery to a webhook: the body that is sent and the result of every
attempt. In a pipe, the body is the last column. Of the receiver's responses,
the server stores only the status and the duration.`,
		Example: `  animalstore webhooks delivery 1 27
  animalstore webhooks delivery 1 27 --columns body`,
		Args: deliveryArguments,
	}, print)
}

// printSent prints a delivery for a person: a row, its attempts, and the body on several
// lines.
func printSent(p *terminal.Printer, d animalstore.DeliveryWithBody) error {
	if err := terminal.PrintItem(p, d.Delivery, deliveryColumns); err != nil {
		return err
	}
	var text strings.Builder
	for i, a := range d.Attempts {
		fmt.Fprintf(&text, "\nAttempt %d: %s  %s  (%d ms)", i+1, terminal.DateTime(a.Time.Time), attemptResult(a), a.DurationMs)
	}
	var body bytes.Buffer
	if err := json.Indent(&body, d.Body, "", "  "); err != nil {
		return err
	}
	fmt.Fprintf(&text, "\n\nBody:\n%s", body.String())
	for line := range strings.SplitSeq(text.String(), "\n") {
		if _, err := fmt.Fprintln(p.Out, terminal.Visible(line)); err != nil {
			return err
		}
	}
	return nil
}

// retryFlags say which deliveries to send again.
type retryFlags struct {
	state animalstore.DeliveryState
	since string
}

func (f *retryFlags) given() bool { return f.state != "" || f.since != "" }

func (f *retryFlags) parse(now time.Time) (animalstore.DeliveryRetry, error) {
	since, err := parseSince(f.since, now)
	return animalstore.DeliveryRetry{State: f.state, Since: since}, err
}

var retriedColumns = []terminal.Column[animalstore.RetriedDeliveries]{
	{Title: "DELIVERIES", Text: func(r animalstore.RetriedDeliveries) string { return strconv.Itoa(r.Deliveries) }},
}

func webhooksRetryCommand(conn *connection) *cobra.Command {
	var f retryFlags
	var which animalstore.DeliveryRetry
	cmd := deliveries.onItem(conn, &cobra.Command{
		Use:   "retry WEBHOOK [DELIVERY]",
		Short: "Send a delivery again, or many",
		Long: `Send a delivery in any state again, and print it. With --state or --since, send
all that match, and print how many; --since alone includes delivered ones. If
one fails, it is retried like a new one. While the webhook is paused or
disabled, only pings are sent; the others wait.`,
		Example: `  animalstore webhooks retry 1 27
  animalstore webhooks retry 1 --state failed
  animalstore webhooks retry 1 --since 2h`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case !f.given() && len(args) == 1:
				return cli.Usagef("give the id of a delivery, or choose many with --state or --since: \"animalstore webhooks deliveries %s\" shows them", args[0])
			case !f.given():
				return deliveryArguments(cmd, args)
			case len(args) == 2:
				return cli.Usagef("give the id of a delivery, or choose many with --state or --since, not both")
			}
			return cli.OneID("webhook", "webhooks")(cmd, args)
		},
		PreRunE: func(*cobra.Command, []string) (err error) {
			which, err = f.parse(time.Now())
			return err
		},
	}, func(cmd *cobra.Command, s invocation, webhook int64) (animalstore.Delivery, error) {
		_, id := deliveryIDs(cmd.Flags().Args())
		delivery, err := s.RetryDelivery(cmd.Context(), webhook, id)
		if err == nil {
			s.Note("Sending delivery %d again. See the result with \"animalstore webhooks delivery %d %d\".", id, webhook, id)
		}
		return delivery, err
	})
	cli.RegisterOneOf(cmd, &f.state, animalstore.RetryStates, "state", "all deliveries in this state: "+animalstore.JoinOr(animalstore.RetryStates))
	cmd.Flags().StringVar(&f.since, "since", "", "all deliveries since this `time`, such as 2026-11-15T09:00:00Z, or 2h for two hours ago")
	one := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !f.given() {
			return one(cmd, args)
		}
		err := conn.do(cmd, func(s invocation) error { return s.retryDeliveries(cmd.Context(), cli.IDs(args)[0], which) })
		if errors.As(err, new(incomplete)) {
			if f.since != "" { // the server continues only a request for the same time
				f.since = which.Since.String()
			}
			err = continueWith(err, "To continue, run this within 10 minutes", sameCommand(cmd, "since", args[0]))
		}
		return err
	}
	return cmd
}

// retryDeliveries sends all deliveries that match again, and prints how many.
func (s invocation) retryDeliveries(ctx context.Context, webhook int64, which animalstore.DeliveryRetry) error {
	n, err := s.RetryDeliveries(ctx, webhook, which)
	switch {
	case errors.Is(err, client.ErrOutcomeUnknown):
		return incomplete{err}
	case err != nil:
		return err
	}
	s.Note("Sending these deliveries again. See the results with \"animalstore webhooks deliveries %d\".", webhook)
	return terminal.PrintItem(s.Printer, animalstore.RetriedDeliveries{Deliveries: n}, retriedColumns)
}
