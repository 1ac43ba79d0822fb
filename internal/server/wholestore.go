package server

import (
	"context"
	"strings"

	"animalstore/internal/db"
	"animalstore/internal/db/postgres"
	"animalstore/internal/db/sqlite"
)

// OpenSource opens a snapshot of a database by its URL, to read the whole store. If
// alone is set, it refuses a database that a server is using.
func OpenSource(ctx context.Context, url string, alone bool) (db.Source, error) {
	if err := CheckDatabaseURL("the database", url); err != nil {
		return nil, err
	}
	if postgres.Is(url) {
		source, err := postgres.OpenSource(ctx, url, alone)
		return openedOr[db.Source](source, err)
	}
	source, err := sqlite.OpenSource(ctx, sqliteFile(url), alone)
	return openedOr[db.Source](source, err)
}

// OpenTarget opens a database by its URL, to fill it with a whole store.
func OpenTarget(ctx context.Context, url string) (db.Target, error) {
	if err := CheckDatabaseURL("the database", url); err != nil {
		return nil, err
	}
	if postgres.Is(url) {
		target, err := postgres.OpenTarget(ctx, url)
		return openedOr[db.Target](target, err)
	}
	target, err := sqlite.OpenTarget(ctx, sqliteFile(url))
	return openedOr[db.Target](target, err)
}

// DatabaseVersions returns the version of a database's tables, 0 if there are none,
// and the version that this program uses. It changes nothing.
func DatabaseVersions(ctx context.Context, url string) (current, latest int64, err error) {
	if err := CheckDatabaseURL("the database", url); err != nil {
		return 0, 0, err
	}
	if postgres.Is(url) {
		return postgres.Versions(ctx, url)
	}
	have, known, err := sqlite.Versions(sqliteFile(url))
	return int64(have), int64(known), err
}

func sqliteFile(url string) string { return strings.TrimPrefix(url, "sqlite:") }

// openedOr returns err, if any, without a nil pointer in a non-nil interface.
func openedOr[T any](opened T, err error) (T, error) {
	if err != nil {
		var none T
		return none, err
	}
	return opened, nil
}
