package main

import (
	"context"
	"fmt"
	"os"

	"animalstore/internal/commandline"
	"animalstore/internal/db"
	"animalstore/internal/db/sqlite"
	"animalstore/internal/dbadmin"
	"animalstore/internal/server"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func dbCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "db",
		Short: "Back up, restore, move, check and update a database",
		Long:  "Back up, restore, move, check and update the database of a store.",
		Example: `  animalstore db backup tuesday.db --database sqlite:animalstore.db
  animalstore db check --database sqlite:animalstore.db
  animalstore db move --from sqlite:animalstore.db --to postgres://db1/store`,
	}
	return commandline.Group(cmd, dbBackupCommand(), dbRestoreCommand(), dbMoveCommand(), dbCheckCommand(), dbMigrateCommand())
}

// databaseFlag is a flag that names a database, and its value.
type databaseFlag struct{ flag, url string }

// register adds --database, the flag of the commands that use one database.
func (d *databaseFlag) register(flags *pflag.FlagSet) {
	d.flag = "database"
	flags.StringVar(&d.url, d.flag, "sqlite:animalstore.db", databaseUsage)
}

const databaseUsage = "the store's database: sqlite:FILE or postgres://USER@HOST/NAME"

// check refuses a value that isn't a valid URL.
func (d databaseFlag) check() error {
	if err := server.CheckDatabaseURL("--"+d.flag, d.url); err != nil {
		return usagef("%w", err)
	}
	return nil
}

// stopAfter ends a command whose database can't be trusted any more, as after a failed
// write to disk.
func stopAfter(err error) {
	fmt.Fprintln(os.Stderr, "animalstore: the database can't be trusted any more:", err)
	os.Exit(exitError)
}

// open opens the database as a server does.
func (d databaseFlag) open(ctx context.Context, opts sqlite.Options) (db.DB, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	opts.Fatal = stopAfter
	return server.OpenDatabase(ctx, d.url, opts)
}

// openSource opens a snapshot of the database. If alone is set, it refuses one that
// a server is using.
func (d databaseFlag) openSource(ctx context.Context, alone bool) (db.Source, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	return server.OpenSource(ctx, "--"+d.flag, d.url, alone)
}

func dbMigrateCommand() *cobra.Command {
	var database databaseFlag
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Create or update a database's tables",
		Long: `Create a database's tables, or update them to this version. A server does the
same when it starts. Use this to do it earlier, or as a user with more rights.`,
		Example: `  animalstore db migrate --database sqlite:/var/lib/animalstore/store.db
  animalstore db migrate --database postgres://owner@db1/store`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := database.check(); err != nil {
				return err
			}
			return dbadmin.Migrate(cmd.Context(), database.url, stopAfter, newPrinter(cmd))
		},
	}
	database.register(cmd.Flags())
	jsonFlag(cmd)
	return cmd
}
