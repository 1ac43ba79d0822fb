package main

import (
	"fmt"
	"iter"
	"strings"
	"time"

	"animalstore"
	"animalstore/internal/ratelimit"

	"github.com/spf13/cobra"
)

func keysListCommand(at *keysPlace) *cobra.Command {
	var f listFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List keys, the latest first, without their secrets",
		Example: `  animalstore keys list
  animalstore keys list --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			return at.do(cmd, *f.json, func(ring keyRing, p *printer) error {
				return printAll(p, &f, "keys", keyColumns(time.Now()), func(pageSize int) iter.Seq2[animalstore.Key, error] {
					return ring.list(cmd.Context(), pageSize)
				})
			})
		},
	}
	f.register(cmd, 0)
	return cmd
}

func keyColumns(now time.Time) []column[animalstore.Key] {
	return []column[animalstore.Key]{
		{title: "ID", text: func(k animalstore.Key) string { return decimal(k.ID) }},
		{title: "NAME", text: func(k animalstore.Key) string { return k.Name }, shrink: true},
		{title: "PLAN", text: func(k animalstore.Key) string { return string(k.Plan) }},
		{title: "PER MINUTE", text: func(k animalstore.Key) string { return decimal(k.Limits.PerMinute) }, pipeOnly: true},
		{title: "PER DAY", text: func(k animalstore.Key) string { return decimal(k.Limits.PerDay) }, pipeOnly: true},
		{title: "PERMISSIONS", text: func(k animalstore.Key) string { return k.Permissions.String() }},
		{title: "ENVIRONMENT", text: func(k animalstore.Key) string { return string(k.Environment) }, pipeOnly: true},
		{title: "LAST USED", time: func(k animalstore.Key) animalstore.Time { return k.LastUsedAt }, relative: true},
		{title: "EXPIRES", time: func(k animalstore.Key) animalstore.Time { return k.ExpiresAt }, relative: true},
		{title: "STATE",
			text:   func(k animalstore.Key) string { return keyState(&k, now) },
			colour: func(k animalstore.Key) colour { return keyColour(&k, now) }},
	}
}

func keysShowCommand(at *keysPlace) *cobra.Command {
	var asJSON *bool
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show one key, without its secret",
		Long: `Show one key, without its secret. Straight from the database it also tells what
is left of its limits and whether it is banned, which a server tells only the
key itself: see "animalstore limits".`,
		Example: `  animalstore keys show 2
  animalstore keys show 2 --json`,
		Args: oneID("key", "keys"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return at.doWithKey(cmd, *asJSON, args[0], func(ring keyRing, p *printer, id int64) error {
				key, limits, err := ring.show(cmd.Context(), id)
				switch {
				case err != nil:
					return err
				case !p.json:
					return printFields(p, keyFields(&key, limits, time.Now()))
				case limits == nil:
					return printJSON(p, key)
				}
				return printJSON(p, struct {
					animalstore.Key
					LeftThisMinute int64            `json:"leftThisMinute"`
					LeftToday      int64            `json:"leftToday"`
					BannedUntil    animalstore.Time `json:"bannedUntil"`
				}{key, limits.Minute.Remaining, limits.Day.Remaining, limits.BannedUntil})
			})
		},
	}
	asJSON = jsonFlag(cmd)
	return cmd
}

// keyFields are what is shown of a key. limits are nil if they are not known.
func keyFields(k *animalstore.Key, limits *ratelimit.Status, now time.Time) []field {
	fields := []field{
		{name: "ID", value: decimal(k.ID)},
		{name: "Name", value: k.Name},
		{name: "State", value: keyState(k, now), colour: keyColour(k, now)},
		{name: "Plan", value: string(k.Plan)},
	}
	if limits == nil {
		fields = append(fields,
			field{name: "Requests a minute", value: decimal(k.Limits.PerMinute)},
			field{name: "Requests a day", value: decimal(k.Limits.PerDay)})
	} else {
		fields = append(fields,
			field{name: "Left this minute", value: fmt.Sprintf("%d of %d", limits.Minute.Remaining, limits.Minute.Limit)},
			field{name: "Left today", value: fmt.Sprintf("%d of %d", limits.Day.Remaining, limits.Day.Limit)})
	}
	fields = append(fields,
		field{name: "Permissions", value: k.Permissions.String()},
		field{name: "Environment", value: string(k.Environment)},
		field{name: "Created", value: when(k.CreatedAt)},
		field{name: "Last used", value: when(k.LastUsedAt)},
		field{name: "Expires", value: when(k.ExpiresAt)},
		field{name: "Revoked", value: when(k.RevokedAt)})
	if limits != nil {
		fields = append(fields, banField(limits.BannedUntil))
	}
	return fields
}

func keyState(k *animalstore.Key, now time.Time) string {
	switch {
	case !k.RevokedAt.IsZero():
		return "revoked"
	case !k.Live(now):
		return "expired"
	}
	return "live"
}

func keyColour(k *animalstore.Key, now time.Time) colour {
	if k.Live(now) {
		return green
	}
	return red
}

func keysUsageCommand(at *keysPlace) *cobra.Command {
	var hours int
	var asJSON *bool
	cmd := &cobra.Command{
		Use:   "usage ID",
		Short: "Show how a key was used, hour by hour",
		Example: `  animalstore keys usage 2
  animalstore keys usage 2 --hours 168`,
		Args: oneID("key", "keys"),
		RunE: func(cmd *cobra.Command, args []string) error {
			most := int(animalstore.UsageKept / time.Hour)
			if hours < 1 || hours > most {
				return usageError{fmt.Errorf("--hours must be from 1 to %d", most)}
			}
			return at.doWithKey(cmd, *asJSON, args[0], func(ring keyRing, p *printer, id int64) error {
				key, usage, err := ring.usage(cmd.Context(), id, hours)
				if err != nil {
					return err
				}
				if p.json {
					return printJSON(p, usage)
				}
				return printUsage(p, key, usage, hours)
			})
		},
	}
	cmd.Flags().IntVar(&hours, "hours", 24, "how many hours to look back")
	asJSON = jsonFlag(cmd)
	return cmd
}

// printUsage prints a row for each hour with requests, oldest first. A person
// gets the sum as well, and a bar to compare the hours by.
func printUsage(p *printer, key animalstore.Key, usage []animalstore.Usage, hours int) error {
	var admitted, refused, most int64
	for _, u := range usage {
		admitted += u.Admitted
		refused += u.Refused
		most = max(most, u.Admitted+u.Refused)
	}
	columns := []column[animalstore.Usage]{
		{title: "HOUR (UTC)", time: func(u animalstore.Usage) animalstore.Time { return u.Hour }},
		{title: "ADMITTED", text: func(u animalstore.Usage) string { return decimal(u.Admitted) }},
		{title: "REFUSED", text: func(u animalstore.Usage) string { return decimal(u.Refused) }},
	}
	if p.screen.terminal {
		columns = append(columns, column[animalstore.Usage]{title: "█ ADMITTED  ░ REFUSED",
			text: func(u animalstore.Usage) string { return bar(u.Admitted, u.Refused, most) }})
	}
	p.note("Key %d (%s) in the last %d hours: %d admitted, %d refused.", key.ID, visible(key.Name), hours, admitted, refused)
	return printList(p, func(yield func(animalstore.Usage, error) bool) {
		for i := range usage {
			if !yield(usage[len(usage)-1-i], nil) {
				return
			}
		}
	}, columns)
}

const barWidth = 36

// bar draws an hour against the busiest one. What is not nothing shows.
func bar(admitted, refused, most int64) string {
	length := func(n int64) int {
		if n == 0 {
			return 0
		}
		return max(1, int(n*barWidth/most))
	}
	return strings.Repeat("█", length(admitted)) + strings.Repeat("░", length(refused))
}
