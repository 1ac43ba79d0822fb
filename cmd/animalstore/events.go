package main

import (
	"iter"
	"strings"

	"animalstore"
	"animalstore/client"
	"animalstore/internal/commandline"
	"animalstore/internal/tables"

	"github.com/spf13/cobra"
)

func eventsCommand() *cobra.Command {
	var conn connection
	var f eventFlags
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Show the changes of the store, and follow new ones",
		Long: `Show the changes of the store, the oldest first. Each event says when and how a
pet, order, category, key or webhook changed, what it was like afterwards, and
which key made the change. Without the permission admin, your key doesn't see
the events of keys and webhooks, or which other key made a change.

With --follow, show new events as they happen, or all after --after, until
Ctrl-C. If the server can't be reached for a while, the command resumes where it
was.

Each event is one line: aligned on a terminal, tab-separated in a pipe, and a
JSON object with --json.

` + keyHelp,
		Example: `  animalstore events --type pet.created
  animalstore events --subject pet/12 --json
  animalstore events --follow --type 'pet.*,order.*'`,
		Args:    noArguments,
		PreRunE: func(cmd *cobra.Command, _ []string) error { return f.check(cmd) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			conn.wait = conn.wait || f.follow
			return conn.do(cmd, func(s session) error {
				return tables.PrintEvents(s.Printer, f.events(cmd, s))
			})
		},
	}
	conn.register(cmd, cmd.Flags())
	f.register(cmd)
	jsonFlag(cmd)
	return cmd
}

// eventFlags say which events to print.
type eventFlags struct {
	follow  bool
	types   []string
	subject string
	after   int64
}

func (f *eventFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVarP(&f.follow, "follow", "f", false, "wait for further events")
	flags.StringSliceVar(&f.types, "type", nil, "only these comma-separated types, such as pet.created, or pet.* for all of pets")
	flags.StringVar(&f.subject, "subject", "", "only events of one `resource`, such as pet/12")
	flags.Int64Var(&f.after, "after", 0, "only events after the one with this `id`")
	completeFlag(cmd, "type", commandline.CompleteList(animalstore.EventTypes))
}

func (f *eventFlags) check(cmd *cobra.Command) error {
	if len(f.types) > 0 {
		if _, err := animalstore.ParseEventTypes(strings.Join(f.types, ",")); err != nil {
			return usagef("--%s", err.(*animalstore.Error).Message)
		}
	}
	if _, _, ok := animalstore.ParseEventSubject(f.subject); f.subject != "" && !ok {
		return usagef("--subject must be a resource and its id, such as pet/12, not %q", f.subject)
	}
	if f.after < 0 {
		return usagef("--after must not be negative")
	}
	return nil
}

func (f *eventFlags) events(cmd *cobra.Command, s session) iter.Seq2[animalstore.Event, error] {
	o := client.EventsOptions{Types: f.types, Subject: f.subject, After: f.after}
	if f.follow {
		o.Latest = !cmd.Flag("after").Changed
		return s.Events(cmd.Context(), o)
	}
	return s.ListEvents(cmd.Context(), o)
}
