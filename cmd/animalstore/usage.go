package main

import (
	"slices"
	"strings"
	"time"

	"animalstore"
	"animalstore/internal/cli"
	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
)

func usageCommand() *cobra.Command {
	var conn connection
	var hours usageHours
	cmd := &cobra.Command{
		Use:   "usage",
		Short: "Show how your key was used, hour by hour",
		Long: `Show the requests of your key, hour by hour: those that were admitted, and those
that were refused because a limit was reached. This request counts like any
other.

` + keyHelp,
		Example: `  animalstore usage
  animalstore usage --hours 168 --json`,
		Args:    cli.NoArguments,
		PreRunE: func(*cobra.Command, []string) error { return hours.check() },
		RunE: func(cmd *cobra.Command, _ []string) error {
			return conn.do(cmd, func(s session) error {
				usage, err := s.GetUsage(cmd.Context(), int(hours))
				if err != nil {
					return err
				}
				return printUsage(s.Printer, "Your key", usage, int(hours))
			})
		},
	}
	conn.register(cmd, cmd.Flags())
	hours.register(cmd)
	jsonFlag(cmd)
	return cmd
}

func keysUsageCommand(at *keyLocation) *cobra.Command {
	var hours usageHours
	cmd := at.onKey(&cobra.Command{
		Use:   "usage ID",
		Short: "Show how a key was used, hour by hour",
		Example: `  animalstore keys usage 2
  animalstore keys usage 2 --hours 168`,
		PreRunE: func(*cobra.Command, []string) error { return hours.check() },
	}, func(cmd *cobra.Command, store keyStore, p *terminal.Printer, id int64) error {
		key, usage, err := store.Usage(cmd.Context(), id, int(hours))
		if err != nil {
			return err
		}
		return printUsage(p, keyTitle(key), usage, int(hours))
	})
	hours.register(cmd)
	return cmd
}

// usageHours is how many hours of usage to print.
type usageHours int

func (h *usageHours) register(cmd *cobra.Command) {
	cmd.Flags().IntVar((*int)(h), "hours", 24, "how many hours to look back")
}

func (h usageHours) check() error {
	if most := usageHours(animalstore.UsageKept / time.Hour); h < 1 || h > most {
		return cli.Usagef("--hours must be 1 to %d", most)
	}
	return nil
}

// printUsage prints a row for each hour with requests, the oldest first. A
// terminal also gets the total and, if it is wide enough, bars to compare the hours.
func printUsage(p *terminal.Printer, key string, usage []animalstore.Usage, hours int) error {
	if p.JSON {
		return p.PrintJSON(usage)
	}
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
			Text: func(u animalstore.Usage) string { return bar(u.Admitted, u.Refused, most) }})
	}
	p.Note("%s in the last %d hours: %d admitted, %d refused.", key, hours, admitted, refused)
	return terminal.PrintList(p, func(yield func(animalstore.Usage, error) bool) {
		for _, u := range slices.Backward(usage) {
			if !yield(u, nil) {
				return
			}
		}
	}, columns)
}

// bar draws two numbers as parts of a bar, in proportion to the largest sum of the two in
// the table. Any number above 0 is visible.
func bar(solid, shaded, largest int64) string {
	const width = 36
	length := func(n int64) int {
		if n == 0 {
			return 0
		}
		return max(1, int(n*width/largest))
	}
	return strings.Repeat("█", length(solid)) + strings.Repeat("░", length(shaded))
}
