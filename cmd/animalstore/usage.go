package main

import (
	"slices"
	"time"

	"animalstore"
	"animalstore/internal/cli"
	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
)

func usageCommand() *cobra.Command {
	var conn connection
	var hours usageHours
	cmd := conn.command(&cobra.Command{
		Use:   "usage",
		Short: "Show how your key was used, hour by hour",
		Long: `Show the requests of your key, hour by hour: those that were admitted, and those
that were refused because a limit was reached. This request counts like any
other.

` + keyHelp,
		Example: `  animalstore usage
  animalstore usage --hours 168 --json`,
		PreRunE: func(*cobra.Command, []string) error { return hours.check() },
	}, func(cmd *cobra.Command, s invocation) error {
		usage, err := s.GetUsage(cmd.Context(), int(hours))
		if err != nil {
			return err
		}
		return printUsage(s.Printer, "Your key", usage, int(hours))
	})
	hours.register(cmd)
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

var usageColumns = []terminal.Column[animalstore.Usage]{
	{Title: "HOUR (UTC)", Time: func(u animalstore.Usage) time.Time { return u.Hour.Time }},
	{Title: "ADMITTED", Text: func(u animalstore.Usage) string { return decimal(u.Admitted) }},
	{Title: "REFUSED", Text: func(u animalstore.Usage) string { return decimal(u.Refused) }},
}

// printUsage prints the total and a row for each hour with requests, oldest first.
func printUsage(p *terminal.Printer, key string, usage []animalstore.Usage, hours int) error {
	if p.JSON {
		return p.PrintJSON(usage)
	}
	var admitted, refused int64
	for _, u := range usage {
		admitted += u.Admitted
		refused += u.Refused
	}
	p.Note("%s in the last %d hours: %d admitted, %d refused.", key, hours, admitted, refused)
	slices.Reverse(usage)
	return printEach(p, usage, usageColumns, func(u animalstore.Usage) (animalstore.Usage, error) { return u, nil })
}
