package main

import (
	"fmt"
	"iter"
	"time"

	"animalstore"
	"animalstore/internal/ratelimit"
	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
)

func keysListCommand(at *keyLocation) *cobra.Command {
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
			return at.do(cmd, func(store keyStore, p *terminal.Printer) error {
				keys := resource[animalstore.Key]{"key", "keys", keyColumns(time.Now())}
				return keys.printPages(p, &f, func(pageSize int) iter.Seq2[animalstore.Key, error] {
					return store.list(cmd.Context(), pageSize)
				})
			})
		},
	}
	f.register(cmd, 0)
	return cmd
}

func keyColumns(now time.Time) []terminal.Column[animalstore.Key] {
	return []terminal.Column[animalstore.Key]{
		{Title: "ID", Text: func(k animalstore.Key) string { return decimal(k.ID) }},
		{Title: "NAME", Text: func(k animalstore.Key) string { return k.Name }, Shrink: true},
		{Title: "PLAN", Text: func(k animalstore.Key) string { return string(k.Plan) }},
		{Title: "PER MINUTE", Text: func(k animalstore.Key) string { return decimal(k.Limits.PerMinute) }, PipeOnly: true},
		{Title: "PER DAY", Text: func(k animalstore.Key) string { return decimal(k.Limits.PerDay) }, PipeOnly: true},
		{Title: "PERMISSIONS", Text: func(k animalstore.Key) string { return k.Permissions.String() }},
		{Title: "ENVIRONMENT", Text: func(k animalstore.Key) string { return string(k.Environment) }, PipeOnly: true},
		{Title: "LAST USED", Time: func(k animalstore.Key) time.Time { return k.LastUsedAt.Time }, Relative: true},
		{Title: "EXPIRES", Time: func(k animalstore.Key) time.Time { return k.ExpiresAt.Time }, Relative: true},
		{Title: "STATE",
			Text:   func(k animalstore.Key) string { return keyState(&k, now) },
			Colour: func(k animalstore.Key) terminal.Colour { return keyColour(&k, now) }},
	}
}

func keysShowCommand(at *keyLocation) *cobra.Command {
	cmd := at.onKey(&cobra.Command{
		Use:   "show ID",
		Short: "Show one key, without its secret",
		Long: `Show one key, without its secret. With --database it also shows how many
requests the key has left and whether it is banned. A server shows that only to
the key itself: see "animalstore limits".`,
		Example: `  animalstore keys show 2
  animalstore keys show 2 --json`,
	}, func(cmd *cobra.Command, store keyStore, p *terminal.Printer, id int64) error {
		key, limits, err := store.show(cmd.Context(), id)
		switch {
		case err != nil:
			return err
		case !p.JSON:
			return p.PrintFields(keyFields(&key, limits, time.Now()))
		case limits == nil:
			return p.PrintJSON(key)
		}
		return p.PrintJSON(struct {
			animalstore.Key
			LeftThisMinute int64            `json:"leftThisMinute"`
			LeftToday      int64            `json:"leftToday"`
			BannedUntil    animalstore.Time `json:"bannedUntil"`
		}{key, limits.Minute.Remaining, limits.Day.Remaining, limits.BannedUntil})
	})
	jsonFlag(cmd)
	return cmd
}

// keyFields are the details of a key. limits is nil if they are unknown.
func keyFields(k *animalstore.Key, limits *ratelimit.Status, now time.Time) []terminal.Field {
	fields := []terminal.Field{
		{Name: "ID", Value: decimal(k.ID)},
		{Name: "Name", Value: k.Name},
		{Name: "State", Value: keyState(k, now), Colour: keyColour(k, now)},
		{Name: "Plan", Value: string(k.Plan)},
	}
	if limits == nil {
		fields = append(fields,
			terminal.Field{Name: "Requests a minute", Value: decimal(k.Limits.PerMinute)},
			terminal.Field{Name: "Requests a day", Value: decimal(k.Limits.PerDay)})
	} else {
		fields = append(fields,
			terminal.Field{Name: "Left this minute", Value: fmt.Sprintf("%d of %d", limits.Minute.Remaining, limits.Minute.Limit)},
			terminal.Field{Name: "Left today", Value: fmt.Sprintf("%d of %d", limits.Day.Remaining, limits.Day.Limit)})
	}
	fields = append(fields,
		terminal.Field{Name: "Permissions", Value: k.Permissions.String()},
		terminal.Field{Name: "Environment", Value: string(k.Environment)},
		terminal.Field{Name: "Created", Value: terminal.DateTime(k.CreatedAt.Time)},
		terminal.Field{Name: "Last used", Value: terminal.DateTime(k.LastUsedAt.Time)},
		terminal.Field{Name: "Expires", Value: terminal.DateTime(k.ExpiresAt.Time)},
		terminal.Field{Name: "Revoked", Value: terminal.DateTime(k.RevokedAt.Time)})
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

func keyColour(k *animalstore.Key, now time.Time) terminal.Colour {
	if k.Live(now) {
		return terminal.Green
	}
	return terminal.Red
}

func keysUsageCommand(at *keyLocation) *cobra.Command {
	var hours int
	cmd := at.onKey(&cobra.Command{
		Use:   "usage ID",
		Short: "Show how a key was used, hour by hour",
		Example: `  animalstore keys usage 2
  animalstore keys usage 2 --hours 168`,
		PreRunE: func(*cobra.Command, []string) error {
			if most := int(animalstore.UsageKept / time.Hour); hours < 1 || hours > most {
				return usageError{fmt.Errorf("--hours must be 1 to %d", most)}
			}
			return nil
		},
	}, func(cmd *cobra.Command, store keyStore, p *terminal.Printer, id int64) error {
		key, usage, err := store.usage(cmd.Context(), id, hours)
		switch {
		case err != nil:
			return err
		case p.JSON:
			return p.PrintJSON(usage)
		}
		return printUsage(p, key, usage, hours)
	})
	cmd.Flags().IntVar(&hours, "hours", 24, "how many hours to look back")
	jsonFlag(cmd)
	return cmd
}

// printUsage prints a row for each hour with requests, the oldest first. A
// terminal also gets the total, and bars to compare the hours.
func printUsage(p *terminal.Printer, key animalstore.Key, usage []animalstore.Usage, hours int) error {
	var admitted, refused, most int64
	for _, u := range usage {
		admitted += u.Admitted
		refused += u.Refused
		most = max(most, u.Admitted+u.Refused)
	}
	columns := []terminal.Column[animalstore.Usage]{
		{Title: "HOUR (UTC)", Time: func(u animalstore.Usage) time.Time { return u.Hour.Time }},
		{Title: "ADMITTED", Text: func(u animalstore.Usage) string { return decimal(u.Admitted) }},
		{Title: "REFUSED", Text: func(u animalstore.Usage) string { return decimal(u.Refused) }},
	}
	if p.Screen.Terminal {
		columns = append(columns, terminal.Column[animalstore.Usage]{Title: "█ ADMITTED  ░ REFUSED",
			Text: func(u animalstore.Usage) string { return terminal.Bar(u.Admitted, u.Refused, most) }})
	}
	p.Note("Key %d (%s) in the last %d hours: %d admitted, %d refused.", key.ID, terminal.Visible(key.Name), hours, admitted, refused)
	return terminal.PrintList(p, func(yield func(animalstore.Usage, error) bool) {
		for i := range usage {
			if !yield(usage[len(usage)-1-i], nil) {
				return
			}
		}
	}, columns)
}
