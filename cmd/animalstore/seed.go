package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"animalstore/internal/db"
	"animalstore/internal/db/postgres"
	"animalstore/internal/db/sqlite"
	"animalstore/internal/dbadmin"
	"animalstore/internal/sample"
	"animalstore/internal/terminal"

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
				return usageError{fmt.Errorf("--pets must be the number of pets to add: 1 to %d", sample.MaxPets)}
			}
			return seed(cmd.Context(), f, newPrinter(cmd))
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

// seed fills the database that --database names.
func seed(ctx context.Context, f seedFlags, p *terminal.Printer) error {
	store, err := openToSeed(ctx, f.database)
	if err != nil {
		return err
	}
	return errors.Join(dbadmin.Seed(ctx, store, sample.Store{Seed: f.seed, Pets: f.pets}, p), store.Close())
}

// seedTimeout limits one batch in PostgreSQL. It is longer than a server's,
// because no client is waiting for a response.
const seedTimeout = time.Minute

func openToSeed(ctx context.Context, d databaseFlag) (db.DB, error) {
	if postgres.Is(d.url) && postgres.CheckURL(d.url) == nil {
		return postgres.Open(ctx, d.url, postgres.Options{Timeout: seedTimeout})
	}
	// Serve keeps a server off the file: it wouldn't notice rows written past it.
	return d.open(ctx, sqlite.Options{Serve: true})
}
