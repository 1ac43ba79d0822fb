package main

import (
	"fmt"
	"iter"
	"time"

	"animalstore"
	"animalstore/internal/keyadmin"
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
			columns, err := keyResource.chosen(cmd)
			if err != nil {
				return err
			}
			return at.do(cmd, func(store keyadmin.Keys, p *terminal.Printer) error {
				return keyResource.printPages(p, &f, columns, func(pageSize int) iter.Seq2[animalstore.Key, error] {
					return store.List(cmd.Context(), pageSize)
				})
			})
		},
	}
	f.register(cmd, 0)
	keyResource.registerOutput(cmd)
	return cmd
}

var keyResource = resource[animalstore.Key]{"key", "keys", keyColumns(time.Now()), func(k animalstore.Key) string { return k.Name }}

func keyColumns(now time.Time) []terminal.Column[animalstore.Key] {
	return []terminal.Column[animalstore.Key]{
		{Title: "ID", Text: func(k animalstore.Key) string { return decimal(k.ID) }},
		{Title: "NAME", Text: func(k animalstore.Key) string { return k.Name }, Shrink: true},
		{Title: "PLAN", Text: func(k animalstore.Key) string { return string(k.Plan) }, Drop: 2},
		{Title: "PER MINUTE", Text: func(k animalstore.Key) string { return decimal(k.Limits.PerMinute) }, Drop: 7},
		{Title: "PER DAY", Text: func(k animalstore.Key) string { return decimal(k.Limits.PerDay) }, Drop: 8},
		{Title: "PERMISSIONS", Text: func(k animalstore.Key) string { return k.Permissions.String() }, Drop: 3},
		{Title: "ENVIRONMENT", Text: func(k animalstore.Key) string { return string(k.Environment) }, Drop: 9},
		{Title: "LAST USED", Time: func(k animalstore.Key) time.Time { return k.LastUsedAt.Time }, Relative: true, Drop: 4},
		{Title: "EXPIRES", Time: func(k animalstore.Key) time.Time { return k.ExpiresAt.Time }, Relative: true, Drop: 5},
		{Title: "STATE",
			Text:   func(k animalstore.Key) string { return k.State(now) },
			Colour: func(k animalstore.Key) terminal.Colour { return keyColour(&k, now) }},
		{Title: "BANNED UNTIL", Time: func(k animalstore.Key) time.Time { return k.Ban.Until.Time }, Relative: true, Never: "-", Drop: 6},
	}
}

func keysShowCommand(at *keyLocation) *cobra.Command {
	cmd := at.onKey(&cobra.Command{
		Use:   "show ID",
		Short: "Show one key, without its secret",
		Long: `Show one key, without its secret. With --database it also shows how many
requests the key has left. A server shows that only to the key itself: see
"animalstore limits".`,
		Example: `  animalstore keys show 2
  animalstore keys show 2 --json`,
	}, func(cmd *cobra.Command, store keyadmin.Keys, p *terminal.Printer, id int64) error {
		key, limits, err := store.Show(cmd.Context(), id)
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
	return cmd
}

// keyFields are the details of a key. limits is nil if they are unknown.
func keyFields(k *animalstore.Key, limits *ratelimit.Status, now time.Time) []terminal.Field {
	perMinute := terminal.Field{Name: "Requests a minute", Value: decimal(k.Limits.PerMinute)}
	perDay := terminal.Field{Name: "Requests a day", Value: decimal(k.Limits.PerDay)}
	if limits != nil {
		perMinute = terminal.Field{Name: "Left this minute", Value: fmt.Sprintf("%d of %d", limits.Minute.Remaining, limits.Minute.Limit)}
		perDay = terminal.Field{Name: "Left today", Value: fmt.Sprintf("%d of %d", limits.Day.Remaining, limits.Day.Limit)}
	}
	return []terminal.Field{
		{Name: "ID", Value: decimal(k.ID)},
		{Name: "Name", Value: k.Name},
		{Name: "State", Value: k.State(now), Colour: keyColour(k, now)},
		{Name: "Plan", Value: string(k.Plan)},
		perMinute,
		perDay,
		{Name: "Permissions", Value: k.Permissions.String()},
		{Name: "Environment", Value: string(k.Environment)},
		{Name: "Created", Value: terminal.DateTime(k.CreatedAt.Time)},
		{Name: "Last used", Value: terminal.DateTime(k.LastUsedAt.Time)},
		{Name: "Expires", Value: terminal.DateTime(k.ExpiresAt.Time)},
		{Name: "Revoked", Value: terminal.DateTime(k.RevokedAt.Time)},
		banField(k.Ban.Until),
	}
}

func keyColour(k *animalstore.Key, now time.Time) terminal.Colour {
	switch k.State(now) {
	case "live":
		return terminal.Green
	case "banned":
		return terminal.Yellow
	}
	return terminal.Red
}
