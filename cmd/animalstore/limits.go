package main

import (
	"fmt"

	"animalstore"
	"animalstore/client"
	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
)

func limitsCommand() *cobra.Command {
	var conn connection
	cmd := &cobra.Command{
		Use:   "limits",
		Short: "Show how many requests your key has left",
		Long: `Show the plan of your key, how many requests it has left this minute and today,
and whether it is banned. This request counts like any other.

` + keyHelp,
		Example: `  animalstore limits
  animalstore limits --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return conn.do(cmd, func(s session) error {
				limits, err := s.GetLimits(cmd.Context())
				if err != nil {
					return err
				}
				if s.JSON {
					return s.PrintJSON(limits)
				}
				return s.PrintFields(limitFields(limits))
			})
		},
	}
	conn.register(cmd, cmd.Flags())
	jsonFlag(cmd)
	return cmd
}

func limitFields(l client.Limits) []terminal.Field {
	return []terminal.Field{
		{Name: "Plan", Value: string(l.Plan)},
		windowField("Left this minute", l.Minute),
		windowField("Left today", l.Day),
		{Name: "Strikes", Value: fmt.Sprintf("%d of %d before a ban", l.Strikes.Count, l.Strikes.Threshold)},
		banField(l.Ban.Until),
	}
}

func windowField(name string, w client.LimitWindow) terminal.Field {
	f := terminal.Field{Name: name, Value: fmt.Sprintf("%d of %d, until %s UTC", w.Remaining, w.Limit, terminal.DateTime(w.Reset.Time))}
	if w.Remaining == 0 {
		f.Colour = terminal.Red
	}
	return f
}

// banField shows the end of a ban; the zero time is no ban.
func banField(until animalstore.Time) terminal.Field {
	if until.IsZero() {
		return terminal.Field{Name: "Banned", Value: "no"}
	}
	return terminal.Field{Name: "Banned", Value: "until " + terminal.DateTime(until.Time) + " UTC", Colour: terminal.Red}
}
