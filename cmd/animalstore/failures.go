package main

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"time"

	"animalstore"
	"animalstore/client"
	"animalstore/internal/cli"
	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
)

var failures = resource[animalstore.Failure]{"failed request", "failed requests", failureColumns}

var failureColumns = []terminal.Column[animalstore.Failure]{
	{Title: "ID", Text: func(f animalstore.Failure) string { return decimal(f.ID) }},
	{Title: "TIME (UTC)", Time: func(f animalstore.Failure) time.Time { return f.Time.Time }},
	{Title: "KEY", Text: func(f animalstore.Failure) string { return decimal(f.KeyID) }},
	{Title: "METHOD", Text: func(f animalstore.Failure) string { return f.Method }},
	{Title: "PATH", Text: failurePath},
	{Title: "STATUS", Text: func(f animalstore.Failure) string { return strconv.Itoa(f.Status) }, Colour: failureColour},
	{Title: "CODE", Text: func(f animalstore.Failure) string { return string(f.Code) }},
	{Title: "MESSAGE", Text: func(f animalstore.Failure) string { return f.Message }},
	{Title: "TOOK (MS)", Text: func(f animalstore.Failure) string { return decimal(f.DurationMs) }},
	{Title: "REQUEST ID", Text: func(f animalstore.Failure) string { return f.RequestID }},
}

func failurePath(f animalstore.Failure) string {
	if f.Path == nil {
		return "-" // it isn't in the API, and isn't kept
	}
	return *f.Path
}

func failureColour(f animalstore.Failure) terminal.Colour {
	if f.Status >= 500 {
		return terminal.Red
	}
	return terminal.Yellow
}

func failuresCommand() *cobra.Command {
	var conn connection
	var f failureFlags
	list := &listFlags{}
	cmd := failures.onList(&conn, &cobra.Command{
		Use:   "failures",
		Short: "List requests that failed, and follow new ones",
		Long: `List the requests that got an error in the last seven days, newest first: those
made with your key or, if it has the permission admin, with any key. The guide
says what to do about each code. A request appears within two seconds. Bodies,
query values and headers other than X-Request-Id are never kept.

With --follow, show new ones every five seconds until Ctrl-C, each on one line,
and as a JSON object with --json. Each check counts as a request.

` + keyHelp,
		Example: `  animalstore failures
  animalstore failures --code validation_failed --since 2h
  animalstore failures --request-id c5ul2fp5jp-1a
  animalstore failures --key 2 --all --json
  animalstore failures --follow`,
		PreRunE: func(cmd *cobra.Command, _ []string) error { return f.check(cmd, time.Now()) },
	}, list, func(cmd *cobra.Command, s invocation, pageSize int) iter.Seq2[animalstore.Failure, error] {
		return f.list(cmd.Context(), s.Client, pageSize)
	})
	print := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !f.follow {
			return print(cmd, args)
		}
		conn.bulk = true
		return conn.do(cmd, func(s invocation) error {
			tick := time.NewTicker(followFailuresEvery)
			defer tick.Stop()
			return f.followNew(cmd.Context(), s.Client, s.Printer, tick.C)
		})
	}
	conn.register(cmd, cmd.Flags())
	f.register(cmd)
	return cmd
}

// followFailuresEvery leaves most of the smallest plan's requests to other work.
const followFailuresEvery = 5 * time.Second

// failureFlags say which failures to print.
type failureFlags struct {
	follow bool
	since  string
	query  animalstore.FailureQuery
}

func (f *failureFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVarP(&f.follow, "follow", "f", false, "wait for further failed requests")
	flags.Int64Var(&f.query.KeyID, "key", 0, "only requests of the key with this `id`")
	flags.StringVar(&f.query.RequestID, "request-id", "", "only requests with this `id`, which responses have as X-Request-Id")
	flags.StringVar(&f.since, "since", "", "only requests since this `time`, such as 2026-11-15T09:00:00Z, or how long ago, such as 2h or 7d")
	flags.StringVar((*string)(&f.query.Code), "code", "", "only requests with this error `code`, such as validation_failed")
	cli.CompleteFlag(cmd, "code", cli.FixedValues(animalstore.Codes))
}

func (f *failureFlags) check(cmd *cobra.Command, now time.Time) (err error) {
	if f.query.KeyID < 0 || f.query.KeyID == 0 && cmd.Flag("key").Changed {
		return cli.Usagef("--key must be the id of a key, at least 1")
	}
	if f.query.Code != "" && !slices.Contains(animalstore.Codes, f.query.Code) {
		return cli.Usagef("--code must be an error code such as validation_failed, not %q", f.query.Code)
	}
	for _, flag := range []string{"limit", "all", "columns"} {
		if f.follow && cli.Given(cmd, flag) {
			return cli.Usagef("--%s can't be used with --follow", flag)
		}
	}
	f.query.Since, err = parseSince(f.since, now)
	return err
}

// parseSince parses the flag --since: a time in the past, or how long ago that was. It
// returns the zero time for an empty flag.
func parseSince(text string, now time.Time) (animalstore.Time, error) {
	if text == "" {
		return animalstore.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if ago, notAgo := cli.ParseDuration(text); err != nil && notAgo == nil && ago >= 0 {
		at, err = now.Add(-ago), nil
	}
	if err != nil || at.After(now) {
		return animalstore.Time{}, cli.Usagef("--since must be a time in the past such as 2026-11-15T09:00:00Z, or how long ago such as 2h or 7d, not %q", text)
	}
	return animalstore.At(at), nil
}

func (f *failureFlags) list(ctx context.Context, c *client.Client, pageSize int) iter.Seq2[animalstore.Failure, error] {
	return c.ListFailures(ctx, f.query, client.PageSize(pageSize))
}

// followNew prints new failures at every tick, until ctx ends: with --since, those since
// then, and otherwise those from now on.
func (f *failureFlags) followNew(ctx context.Context, c *client.Client, p *terminal.Printer, tick <-chan time.Time) error {
	last := int64(0)
	if f.since == "" {
		for newest, err := range f.list(ctx, c, 1) {
			if err != nil {
				return err
			}
			last = newest.ID
			break
		}
	}
	for {
		var more []animalstore.Failure
		for one, err := range f.list(ctx, c, maxPage) {
			if err != nil {
				return err
			}
			if one.ID <= last {
				break
			}
			more = append(more, one)
		}
		for _, one := range slices.Backward(more) {
			if err := printFailureLine(p, one); err != nil {
				return err
			}
			last = one.ID
		}
		select {
		case <-tick:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func printFailureLine(p *terminal.Printer, f animalstore.Failure) error {
	var cells []string
	for _, c := range failureColumns {
		if c.Text == nil {
			cells = append(cells, f.Time.String())
			continue
		}
		cells = append(cells, terminal.Visible(c.Text(f)))
	}
	text := fmt.Sprintf("%s  key %-4d  %d %s  %s %s  %s  (%s)", terminal.DateTime(f.Time.Time), f.KeyID,
		f.Status, f.Code, f.Method, failurePath(f), terminal.Visible(f.Message), f.RequestID)
	return printLine(p, f, cells, text)
}
