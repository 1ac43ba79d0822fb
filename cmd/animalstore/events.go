package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"net/url"
	"strconv"
	"strings"
	"time"

	"animalstore"
	"animalstore/internal/cli"
	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
)

func eventsCommand() *cobra.Command {
	var conn connection
	var f eventFlags
	cmd := conn.command(&cobra.Command{
		Use:   "events",
		Short: "Show changes to the store, and follow new ones",
		Long: `Show changes to the store, newest first, or oldest first with --after. Each
event says when and how a pet, photo, order, category, key or webhook changed,
what it was like afterwards, and who made the change. Without the permission
admin, your key doesn't see the events of keys and webhooks. It needs write or
admin to see which other key made a change.

With --follow, show new events as they happen, or all after --after or since
--since, oldest first, until Ctrl-C. If the server can't be reached for a while,
the command resumes where it stopped.

Each event is one line: aligned on a terminal, tab-separated in a pipe, and a
JSON object with --json.

` + keyHelp,
		Example: `  animalstore events --type pet.created
  animalstore events --since 2h --all
  animalstore events --pet 12
  animalstore events --subject order/7 --json
  animalstore events --after 0 --limit 100
  animalstore events --follow --type 'pet.*,order.*'`,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			conn.wait = conn.wait || f.follow
			return f.check(cmd, time.Now())
		},
	}, func(cmd *cobra.Command, s invocation) error {
		return f.print(s.Printer, f.events(cmd, s))
	})
	f.register(cmd)
	return cmd
}

// eventFlags say which events to print.
type eventFlags struct {
	follow  bool
	types   []string
	subject string
	pet     int64
	after   int64
	before  string
	since   string
	from    animalstore.Time // what since means
	listFlags
}

func (f *eventFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVarP(&f.follow, "follow", "f", false, "wait for further events")
	flags.StringSliceVar(&f.types, "type", nil, "only these comma-separated types, such as pet.created, or pet.* for all of pets")
	flags.StringVar(&f.subject, "subject", "", "only events of one `resource`, such as pet/12")
	flags.Int64Var(&f.pet, "pet", 0, "only events of the pet with this `id`, its photos and its orders")
	flags.Int64Var(&f.after, "after", 0, "oldest first: only events after the one with this `id`")
	flags.StringVar(&f.before, "before", "", "only events before the one with this `id`")
	flags.StringVar(&f.since, "since", "",
		"only events since this `time`, such as 2026-11-15T09:00:00Z, or how long ago, such as 2h or 7d")
	f.listFlags.register(cmd, 20)
	cli.CompleteFlag(cmd, "type", cli.CompleteList(animalstore.EventTypes))
}

func (f *eventFlags) check(cmd *cobra.Command, now time.Time) (err error) {
	if len(f.types) > 0 {
		if _, err := animalstore.ParseEventQuery(url.Values{"type": f.types}); err != nil {
			return cli.Usagef("--%s", err.(*animalstore.Error).Message)
		}
	}
	if _, _, ok := animalstore.ParseEventSubject(f.subject); f.subject != "" && !ok {
		return cli.Usagef("--subject must be a resource and its id, such as pet/12, not %q", f.subject)
	}
	switch {
	case cmd.Flag("pet").Changed && f.pet < 1:
		return cli.Usagef("--pet must be the id of a pet, which is positive")
	case f.pet != 0 && f.subject != "":
		return cli.Usagef("use --pet or --subject, not both")
	}
	if id, err := strconv.ParseInt(f.before, 10, 64); f.before != "" && f.before != "latest" && (err != nil || id < 1) {
		return cli.Usagef("--before must be the id of an event, or latest, not %q", f.before)
	}
	if f.before != "" && (f.follow || cmd.Flag("after").Changed) {
		return cli.Usagef("--before can't be used with --after or --follow")
	}
	switch {
	case f.after < 0:
		return cli.Usagef("--after must not be negative")
	case f.since != "" && cmd.Flag("after").Changed:
		return cli.Usagef("use --since or --after, not both")
	}
	for _, flag := range []string{"limit", "all"} {
		if f.follow && cli.Given(cmd, flag) {
			return cli.Usagef("--%s can't be used with --follow", flag)
		}
	}
	if f.from, err = parseSince(f.since, now); err != nil {
		return err
	}
	return cmp.Or(cli.NotEmpty(cmd, "since"), f.listFlags.check(cmd))
}

func (f *eventFlags) events(cmd *cobra.Command, s invocation) iter.Seq2[animalstore.Event, error] {
	q := animalstore.EventQuery{Types: animalstore.EventPatterns(strings.Join(f.types, ",")), Subject: f.subject,
		PetID: f.pet, Since: f.from}
	q.Before, _ = strconv.ParseInt(f.before, 10, 64) // check has seen it
	switch {
	case cmd.Flag("after").Changed:
		q.After = &f.after
	case f.follow:
		q.Latest = f.since == ""
	default:
		q.Newest = q.Before == 0
	}
	if f.follow {
		return s.Events(cmd.Context(), q)
	}
	return s.ListEvents(cmd.Context(), q)
}

// print prints each event as soon as it arrives, as many as the flags ask for.
func (f *eventFlags) print(p *terminal.Printer, events iter.Seq2[animalstore.Event, error]) error {
	printed := 0
	for e, err := range events {
		if err != nil {
			return err
		}
		if e.Time.Before(f.from.Time) { // the server begins up to a minute earlier
			continue
		}
		if err := printEvent(p, e); err != nil {
			return err
		}
		if printed++; printed == f.limit && !f.all && !f.follow {
			break
		}
	}
	switch {
	case p.JSON || !p.Screen.Terminal:
	case printed == 0:
		p.Note("No events found.")
	case printed == f.limit && !f.all:
		p.Note("Stopped after %d. For more, use --limit or --all.", printed)
	}
	return nil
}

func printEvent(p *terminal.Printer, e animalstore.Event) error {
	summary, by := summarize(e), actor(e)
	cells := []string{decimal(e.ID), e.Time.String(), string(e.Type), e.Subject, summary, by}
	if by != "" {
		by = "  (" + by + ")"
	}
	text := fmt.Sprintf("%s  %-16s  %-12s  %s%s", terminal.DateTime(e.Time.Time), e.Type, e.Subject, summary, by)
	return printLine(p, e, cells, text)
}

// printLine prints what a command follows on one line: as JSON, in a pipe its cells, and on a
// terminal the text.
func printLine(p *terminal.Printer, v any, cells []string, text string) error {
	switch {
	case p.JSON:
		line, err := animalstore.EncodeJSON(v)
		if err != nil {
			return err
		}
		text = string(line)
	case !p.Screen.Terminal:
		text = strings.Join(cells, "\t")
	}
	_, err := fmt.Fprintln(p.Out, text)
	return err
}

// actor says who made a change. A key that may only read isn't told which other key did.
func actor(e animalstore.Event) string {
	switch {
	case e.KeyName != nil && e.KeyID != nil:
		return "key " + decimal(*e.KeyID) + ", " + terminal.Visible(*e.KeyName)
	case e.KeyID != nil:
		return "key " + decimal(*e.KeyID)
	case e.Actor == animalstore.ActorKey:
		return "another key"
	case e.Actor == animalstore.ActorCommandLine:
		return "command line"
	}
	return terminal.Visible(string(e.Actor))
}

// maxSummary is how much of a name is shown, in characters.
const maxSummary = 40

// summarize describes a resource in a few words.
func summarize(e animalstore.Event) string {
	var data struct {
		Name, Status, State, URL string
		PetID                    int64
	}
	if err := json.Unmarshal(e.Data, &data); err != nil {
		return ""
	}
	name := data.Name
	if name == "" {
		name = data.URL
	}
	if runes := []rune(name); len(runes) > maxSummary {
		name = string(runes[:maxSummary]) + "…"
	}
	var parts []string
	if data.PetID != 0 {
		parts = append(parts, "pet "+decimal(data.PetID))
	}
	for _, part := range []string{terminal.Visible(name), data.Status, data.State} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ", ")
}
