package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"animalstore"
	"animalstore/internal/cli"
	"animalstore/internal/keys"
	"animalstore/internal/terminal"
	"animalstore/internal/webhook"

	"github.com/spf13/cobra"
)

func webhooksListenCommand(conn *connection) *cobra.Command {
	var f listenFlags
	var to *webhook.Forwarder
	var patterns animalstore.EventPatterns
	cmd := &cobra.Command{
		Use:   "listen",
		Short: "Forward events to a receiver on your machine",
		Long: `Forward new events to a receiver, as a webhook would: with the same body,
headers and signature. It creates no webhook, needs no public address, and tries
each event once. Ctrl-C ends it.

For each event it prints a line with the status of the response and how long it
took, in milliseconds: aligned on a terminal, tab-separated in a pipe, and one
JSON object with --json. It signs with a new secret, which it prints to standard
error, unless you give it one.`,
		Example: `  animalstore webhooks listen --forward-to http://localhost:3000/hook
  animalstore webhooks listen --forward-to http://localhost:3000/hook \
      --types 'pet.*' --secret whsec_dGVzdA==`,
		Args: cli.NoArguments,
		PreRunE: func(cmd *cobra.Command, _ []string) (err error) {
			if patterns, err = eventPatterns(cmd, f.types); err == nil {
				to, err = f.forwarder()
			}
			return err
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			conn.wait = true
			defer to.Close()
			return conn.do(cmd, func(s invocation) error {
				return f.listen(cmd, s, to, cmp.Or(patterns, animalstore.DefaultEventPatterns))
			})
		},
	}
	f.register(cmd)
	jsonFlag(cmd)
	return cmd
}

// listenFlags say what to forward, and where.
type listenFlags struct {
	forwardTo, secret string
	ownSecret         bool // the command made it
	types             []string
}

func (f *listenFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.forwardTo, "forward-to", "", "`address` of your receiver, such as http://localhost:3000/hook (required)")
	cmd.Flags().StringVar(&f.secret, "secret", "", "sign with this secret, whsec_…, instead of a new one; not one of a real webhook, because other users of the machine can read arguments")
	registerEventTypes(cmd, &f.types)
}

func (f *listenFlags) forwarder() (*webhook.Forwarder, error) {
	if f.forwardTo == "" {
		return nil, cli.Usagef("give your receiver with --forward-to, such as http://localhost:3000/hook")
	}
	if f.ownSecret = f.secret == ""; f.ownSecret {
		f.secret = keys.MintWebhookSecret()
	}
	to, err := webhook.NewForwarder(f.forwardTo, f.secret, "animalstore/"+versionString())
	switch {
	case errors.Is(err, webhook.ErrInvalidSecret):
		return nil, cli.Usagef("--secret %w", err)
	case err != nil:
		return nil, cli.Usagef("--forward-to must be an address such as http://localhost:3000/hook, not %q", f.forwardTo)
	}
	return to, nil
}

// listen forwards events until the context ends. It reads its starting position before it
// prints that it forwards, so no later event is missed.
func (f *listenFlags) listen(cmd *cobra.Command, s invocation, to *webhook.Forwarder, patterns animalstore.EventPatterns) error {
	latest, err := s.LatestEventID(cmd.Context())
	if err != nil {
		return err
	}
	if f.ownSecret {
		s.Note("The secret to verify with: %s", f.secret)
	}
	s.Note("Forwarding %s to %s. Ctrl-C ends this.", strings.Join(patterns.List(), ", "), terminal.Visible(f.forwardTo))
	events := s.Events(cmd.Context(), animalstore.EventQuery{After: &latest, Types: patterns})
	return to.ForwardAll(cmd.Context(), events, func(e animalstore.Event, a animalstore.Attempt) error {
		return printForwarded(s.Printer, e, a)
	})
}

// printForwarded prints a line about an event that was forwarded to a receiver, with what
// came back.
func printForwarded(p *terminal.Printer, e animalstore.Event, a animalstore.Attempt) error {
	forwarded := struct {
		EventID int64                 `json:"eventId"`
		Type    animalstore.EventType `json:"type"`
		Subject string                `json:"subject"`
		animalstore.Attempt
	}{e.ID, e.Type, e.Subject, a}
	result := attemptResult(a)
	cells := []string{decimal(e.ID), a.Time.String(), string(e.Type), e.Subject, result, decimal(a.DurationMs)}
	at := terminal.DateTime(a.Time.Time)
	text := fmt.Sprintf("%s  %-16s  %-12s  %s  (%d ms)", at, e.Type, e.Subject, result, a.DurationMs)
	return printLine(p, forwarded, cells, text)
}
