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
		Short: "Move, check and update a database",
		Long:  "Move, check and update the database of a store.",
		Example: `  animalstore db check --database sqlite:animalstore.db
  animalstore db move --from sqlite:animalstore.db --to postgres://db1/store`,
	}
	return groupCommand(cmd, dbMoveCommand(), dbCheckCommand(), dbMigrateCommand())
}

// databaseFlag is a flag that names a database, and its value.
type databaseFlag struct{ flag, url string }

// shown returns the value without credentials.
func (d databaseFlag) shown() string { return shownDatabase(d.url) }

// file returns the path in sqlite:FILE, or "" for a PostgreSQL URL.
func (d databaseFlag) file() (string, error) {
	if postgres.Is(d.url) {
		if err := postgres.CheckURL(d.url); err != nil {
			return "", usageError{fmt.Errorf("--%s: %w", d.flag, err)}
		}
		return "", nil
	}
	scheme, path, _ := strings.Cut(d.url, ":")
	if scheme != "sqlite" || path == "" {
		// The message doesn't repeat the value, because it may contain a password.
		return "", usageError{fmt.Errorf("--%s must be sqlite:FILE, such as sqlite:animalstore.db, or a URL like postgres://user@host:5432/database", d.flag)}
	}
	return path, nil
}

// openSource opens a snapshot of a database. If alone is set, it refuses a
// database that a server is using.
func (d databaseFlag) openSource(ctx context.Context, alone bool) (db.Source, error) {
	path, err := d.file()
	switch {
	case err != nil:
		return nil, err
	case path == "":
		source, err := postgres.OpenSource(ctx, d.url, alone)
		return openedOr[db.Source](source, d.named(err))
	}
	source, err := sqlite.OpenSource(ctx, path, alone)
	return openedOr[db.Source](source, d.named(err))
}

// openTarget opens a database to fill it.
func (d databaseFlag) openTarget(ctx context.Context) (db.Target, error) {
	path, err := d.file()
	switch {
	case err != nil:
		return nil, err
	case path == "":
		target, err := postgres.OpenTarget(ctx, d.url)
		return openedOr[db.Target](target, d.named(err))
	}
	target, err := sqlite.OpenTarget(ctx, path)
	return openedOr[db.Target](target, d.named(err))
}

// openedOr returns err, if any, without a nil pointer in a non-nil interface.
func openedOr[T any](opened T, err error) (T, error) {
	if err != nil {
		var none T
		return none, err
	}
	return opened, nil
}

// named puts the name of this flag into an engine's message, which says --database.
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
		Short: "Create or update a database's tables",
		Long: `Create a database's tables, or update them to this version. A server does the
same when it starts. Use this to do it earlier, or as a user with more rights.`,
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
				text = fmt.Sprintf("The tables were updated from version %d to version %d.", from, to)
			}
			fmt.Fprintln(cmd.OutOrStdout(), text)
			return nil
		},
	}
	cmd.Flags().StringVar(&database.url, "database", "sqlite:animalstore.db", databaseUsage)
	return cmd
}

// migrateDatabase opens a database as a server would, which updates the tables. If
// they are up to date it opens nothing, because a server may be running.
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
