package main

import (
	"animalstore/internal/tables"

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
				return tables.PrintLimits(s.Printer, limits)
			})
		},
	}
	conn.register(cmd, cmd.Flags())
	jsonFlag(cmd)
	return cmd
}
