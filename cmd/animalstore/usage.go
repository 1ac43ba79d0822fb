package main

import (
	"time"

	"animalstore"
	"animalstore/internal/keyadmin"
	"animalstore/internal/tables"
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
		Args:    noArguments,
		PreRunE: func(*cobra.Command, []string) error { return hours.check() },
		RunE: func(cmd *cobra.Command, _ []string) error {
			return conn.do(cmd, func(s session) error {
				usage, err := s.GetUsage(cmd.Context(), int(hours))
				if err != nil {
					return err
				}
				return tables.PrintUsage(s.Printer, "Your key", usage, int(hours))
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
	}, func(cmd *cobra.Command, store keyadmin.Keys, p *terminal.Printer, id int64) error {
		key, usage, err := store.Usage(cmd.Context(), id, int(hours))
		if err != nil {
			return err
		}
		return tables.PrintUsage(p, tables.KeyTitle(key), usage, int(hours))
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
		return usagef("--hours must be 1 to %d", most)
	}
	return nil
}
