package main

import (
	"context"
	"fmt"
	"strings"

	"animalstore/internal/db"
	"animalstore/internal/db/postgres"
	"animalstore/internal/db/sqlite"

	"github.com/spf13/cobra"
)

func dbCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "db",
		Short: "Move, check and bring up to date a database",
		Long:  "Move, check and bring up to date the database that a store is kept in.",
		Example: `  animalstore db check --database sqlite:animalstore.db
  animalstore db move --from sqlite:animalstore.db --to postgres://db1/store`,
		DisableFlagsInUseLine: true,
		Args:                  cobra.ArbitraryArgs,
		RunE:                  onlySubcommands,
	}
	cmd.AddCommand(dbMoveCommand(), dbCheckCommand(), dbMigrateCommand())
	return cmd
}

// databaseFlag is a flag that names a database, and what was given for it.
type databaseFlag struct{ flag, url string }

// shown is what may be shown of it.
func (d databaseFlag) shown() string { return shownDatabase(d.url) }

// file is the path in sqlite:FILE, or "" where a URL of PostgreSQL is given.
func (d databaseFlag) file() (string, error) {
	if postgres.Is(d.url) {
		if err := postgres.CheckURL(d.url); err != nil {
			return "", usageError{fmt.Errorf("--%s: %w", d.flag, err)}
		}
		return "", nil
	}
	scheme, path, _ := strings.Cut(d.url, ":")
	if scheme != "sqlite" || path == "" {
		// The value may hold a password, so it is not repeated.
		return "", usageError{fmt.Errorf("--%s must be sqlite:FILE, such as sqlite:animalstore.db, or a URL like postgres://user@host:5432/database", d.flag)}
	}
	return path, nil
}

// openSource opens a database to read it whole. If alone, one that is served is
// refused.
func (d databaseFlag) openSource(ctx context.Context, alone bool) (db.Source, error) {
	path, err := d.file()
	switch {
	case err != nil:
		return nil, err
	case path == "":
		source, err := postgres.OpenSource(ctx, d.url, alone)
		return orNone[db.Source](source, d.named(err))
	}
	source, err := sqlite.OpenSource(ctx, path, alone)
	return orNone[db.Source](source, d.named(err))
}

// openTarget opens a database to fill it whole.
func (d databaseFlag) openTarget(ctx context.Context) (db.Target, error) {
	path, err := d.file()
	switch {
	case err != nil:
		return nil, err
	case path == "":
		target, err := postgres.OpenTarget(ctx, d.url)
		return orNone[db.Target](target, d.named(err))
	}
	target, err := sqlite.OpenTarget(ctx, path)
	return orNone[db.Target](target, d.named(err))
}

// orNone keeps a nil pointer from becoming something that is not nil.
func orNone[T any](opened T, err error) (T, error) {
	if err != nil {
		var none T
		return none, err
	}
	return opened, nil
}

// named makes an engine's advice speak of this flag: engines know the usual one.
func (d databaseFlag) named(err error) error {
	if err == nil || d.flag == "database" {
		return err
	}
	return renamed{err, strings.ReplaceAll(err.Error(), "--database", "--"+d.flag)}
}

type renamed struct {
	error
	text string
}

func (e renamed) Error() string { return e.text }
func (e renamed) Unwrap() error { return e.error }

func dbMigrateCommand() *cobra.Command {
	database := databaseFlag{flag: "database"}
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Bring a database's tables up to date",
		Long: `Bring a database's tables up to date, or make them. A server does the same when
it starts; here it can be done before, by a user with more rights perhaps.`,
		Example: `  animalstore db migrate --database sqlite:/var/lib/animalstore/store.db
  animalstore db migrate --database postgres://owner@db1/store`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			from, to, err := migrateDatabase(cmd.Context(), database)
			if err != nil {
				return err
			}
			text := fmt.Sprintf("The tables are up to date: version %d.", to)
			if from != to {
				text = fmt.Sprintf("The tables are brought from version %d to version %d.", from, to)
			}
			fmt.Fprintln(cmd.OutOrStdout(), text)
			return nil
		},
	}
	cmd.Flags().StringVar(&database.url, "database", "sqlite:animalstore.db", databaseUsage)
	return cmd
}

// migrateDatabase opens a database as a server would, unless that has nothing to
// do: a server may be running then.
func migrateDatabase(ctx context.Context, d databaseFlag) (from, to int64, err error) {
	path, err := d.file()
	if err != nil {
		return 0, 0, err
	}
	if path == "" {
		from, to, err = postgres.Versions(ctx, d.url)
	} else {
		var have, known int
		have, known, err = sqlite.Versions(path)
		from, to = int64(have), int64(known)
	}
	if err != nil || from == to {
		return from, to, err
	}
	store, err := openDatabase(ctx, d.url, sqlite.Options{Serve: true})
	if err != nil {
		return 0, 0, err
	}
	return from, to, store.Close()
}
