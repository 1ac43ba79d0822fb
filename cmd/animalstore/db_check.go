package main

import (
	"animalstore/internal/dbadmin"

	"github.com/spf13/cobra"
)

func dbCheckCommand() *cobra.Command {
	var database databaseFlag
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check that a store is consistent",
		Long: `Check that a store is consistent: that its file is intact, that pets, orders,
categories and keys agree with each other, and that no event is missing. It only
reads, so it works while a server is running on the same database. It exits with
1 if anything is wrong.`,
		Example: `  animalstore db check
  animalstore db check --database postgres://animalstore@db1/store`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			source, err := database.openSource(cmd.Context(), false)
			if err != nil {
				return err
			}
			defer source.Close()
			return dbadmin.Check(cmd.Context(), source, newPrinter(cmd))
		},
	}
	database.register(cmd.Flags())
	jsonFlag(cmd)
	return cmd
}
