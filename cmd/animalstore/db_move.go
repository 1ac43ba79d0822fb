package main

import (
	"cmp"

	"animalstore/internal/dbadmin"

	"github.com/spf13/cobra"
)

func dbMoveCommand() *cobra.Command {
	from, to := databaseFlag{flag: "from"}, databaseFlag{flag: "to"}
	cmd := &cobra.Command{
		Use:   "move",
		Short: "Copy a whole store into an empty database",
		Long: `Copy a whole store into an empty database, such as from a SQLite file to
PostgreSQL or back: pets, orders, categories, the next ids, events, keys with
their secrets, limits, bans and usage, and idempotency records.

The move is one transaction. If it fails or is interrupted, the new database is
still empty and you can run the same command again. Before it commits, it reads
everything back and compares it. The old store is only read. Stop its server
first, and don't start it again once clients use the new database.`,
		Example: `  animalstore db move --from sqlite:animalstore.db --to postgres://animalstore@db1/store
  animalstore db move --from postgres://animalstore@db1/store --to sqlite:animalstore.db
  animalstore db move --from sqlite:animalstore.db --to sqlite:copy.db`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if from.url == "" || to.url == "" {
				return usagef("name the store to copy with --from and the empty database with --to, such as --from sqlite:animalstore.db --to postgres://user@host/database")
			}
			if from.url == to.url {
				return usagef("--from and --to name the same database")
			}
			if err := cmp.Or(to.check(), from.check()); err != nil {
				return err // before opening anything
			}
			return dbadmin.Move(cmd.Context(), from.url, to.url, newPrinter(cmd))
		},
	}
	cmd.Flags().StringVar(&from.url, "from", "", "the store to copy: sqlite:FILE or postgres://USER@HOST/NAME (required)")
	cmd.Flags().StringVar(&to.url, "to", "", "the empty database to copy it to: sqlite:FILE or postgres://USER@HOST/NAME (required)")
	jsonFlag(cmd)
	return cmd
}
