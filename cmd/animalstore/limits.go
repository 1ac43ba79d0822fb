package main

import (
	"fmt"
	"time"

	"animalstore"
	"animalstore/client"

	"github.com/spf13/cobra"
)

func limitsCommand() *cobra.Command {
	var conn connection
	var asJSON *bool
	cmd := &cobra.Command{
		Use:   "limits",
		Short: "Show what is left of your key's limits",
		Long: `Show the plan of your key, what is left of its requests this minute and today,
and whether it is banned. This is a request like any other and counts.

` + keyHelp,
		Example: `  animalstore limits
  animalstore limits --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return conn.do(cmd, *asJSON, func(s session) error {
				limits, err := s.GetLimits(cmd.Context())
				if err != nil {
					return err
				}
				if s.json {
					return printJSON(s.printer, limits)
				}
				return printFields(s.printer, limitFields(limits))
			})
		},
	}
	conn.register(cmd.Flags())
	asJSON = jsonFlag(cmd)
	return cmd
}

func limitFields(l client.Limits) []field {
	return []field{
		{name: "Plan", value: string(l.Plan)},
		windowField("Left this minute", l.Minute),
		windowField("Left today", l.Day),
		{name: "Strikes", value: fmt.Sprintf("%d of %d, which bring a ban", l.Strikes.Count, l.Strikes.Threshold)},
		banField(l.Ban.Until),
	}
}

func windowField(name string, w client.LimitWindow) field {
	f := field{name: name, value: fmt.Sprintf("%d of %d, until %s UTC", w.Remaining, w.Limit, when(w.Reset))}
	if w.Remaining == 0 {
		f.colour = red
	}
	return f
}

// banField tells of a ban that ends then, or of none.
func banField(until animalstore.Time) field {
	if until.IsZero() {
		return field{name: "Banned", value: "no"}
	}
	return field{name: "Banned", value: "until " + until.Format(time.DateTime) + " UTC", colour: red}
}
