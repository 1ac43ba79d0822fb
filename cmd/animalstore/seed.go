package main

import (
	"animalstore/internal/dbadmin"
	"animalstore/internal/sample"

	"github.com/spf13/cobra"
)

type seedFlags struct {
	database databaseFlag
	pets     int64
	seed     uint64
}

func seedCommand() *cobra.Command {
	var f seedFlags
	var animals int64 // the old name of --pets
	cmd := &cobra.Command{
		Use:   "seed",
		Short: "Fill a store with sample pets",
		Long: `Fill a store with sample pets, directly in the database: pets with names, in
categories with names, and orders that match the status of each pet. The same
--seed and --pets always give the same store.

Existing data isn't changed. Don't run a server on the same SQLite file at the
same time. Ctrl-C stops it cleanly.`,
		Example: `  animalstore seed --pets 1000
  animalstore seed --pets 1000000 --seed 7 --database sqlite:sample.db
  animalstore seed --pets 1000000 --database postgres://animalstore@db1/store`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("pets") {
				f.pets = animals
			}
			if f.pets < 1 || f.pets > sample.MaxPets {
				return usagef("--pets must be the number of pets to add: 1 to %d", sample.MaxPets)
			}
			if err := f.database.check(); err != nil {
				return err
			}
			return dbadmin.SeedDatabase(cmd.Context(), f.database.url, sample.Store{Seed: f.seed, Pets: f.pets}, stopAfter, newPrinter(cmd))
		},
	}
	flags := cmd.Flags()
	f.database.register(flags)
	flags.Int64Var(&f.pets, "pets", 0, "the number of pets to add (required)")
	flags.Int64Var(&animals, "animals", 0, "the old name of --pets")
	flags.MarkHidden("animals")
	flags.Uint64Var(&f.seed, "seed", 1, "which sample to generate: any number")
	jsonFlag(cmd)
	return cmd
}
