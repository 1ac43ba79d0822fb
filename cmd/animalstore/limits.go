package main

import (
	"fmt"

	"animalstore"
	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
)

func limitsCommand() *cobra.Command {
	var conn connection
	return conn.command(&cobra.Command{
		Use:   "limits",
		Short: "Show how many requests your key has left",
		Long: `Show the plan and permissions of your key, how many requests it has left this
minute and today, and whether it is banned. This request counts like any other.

` + keyHelp,
		Example: `  animalstore limits
  animalstore limits --json`,
	}, func(cmd *cobra.Command, s invocation) error {
		limits, err := s.GetLimits(cmd.Context())
		switch {
		case err != nil:
			return err
		case s.JSON:
			return s.PrintJSON(limits)
		}
		return s.PrintFields(limitFields(limits))
	})
}

func limitFields(l animalstore.LimitStatus) []terminal.Field {
	return []terminal.Field{
		{Name: "Plan", Value: string(l.Plan)},
		{Name: "Permissions", Value: l.Permissions.String()},
		windowField("Left this minute", l.Minute),
		windowField("Left today", l.Day),
		{Name: "Strikes", Value: fmt.Sprintf("%d of %d before a ban", l.Strikes.Count, l.Strikes.Threshold)},
		banField(l.Ban.Until),
	}
}

func windowField(name string, w animalstore.LimitWindow) terminal.Field {
	f := terminal.Field{Name: name, Value: fmt.Sprintf("%d of %d, until %s UTC", w.Remaining, w.Limit, terminal.DateTime(w.Reset.Time))}
	if w.Remaining == 0 {
		f.Colour = terminal.Red
	}
	return f
}
