package server

import (
	"context"
	"strings"

	"animalstore/internal/db"
	"animalstore/internal/db/postgres"
	"animalstore/internal/db/sqlite"
)

// OpenSource opens a snapshot of a database by its URL, to read the whole store. If
// alone is set, it refuses a database that a server is using. Errors call the URL by
// the given name, such as --from.
func OpenSource(ctx context.Context, name, url string, alone bool) (db.Source, error) {
	if err := CheckDatabaseURL(name, url); err != nil {
		return nil, err
	}
	if postgres.Is(url) {
		source, err := postgres.OpenSource(ctx, url, alone)
		return opened[db.Source](source, err, name)
	}
	source, err := sqlite.OpenSource(ctx, sqliteFile(url), alone)
	return opened[db.Source](source, err, name)
}

// OpenTarget opens a database by its URL, to fill it with a whole store. Errors call
// the URL by the given name, such as --to.
func OpenTarget(ctx context.Context, name, url string) (db.Target, error) {
	if err := CheckDatabaseURL(name, url); err != nil {
		return nil, err
	}
	if postgres.Is(url) {
		target, err := postgres.OpenTarget(ctx, url)
		return opened[db.Target](target, err, name)
	}
	target, err := sqlite.OpenTarget(ctx, sqliteFile(url))
	return opened[db.Target](target, err, name)
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

// opened returns either a store or an error, without a nil pointer in a non-nil
// interface. The engines' messages call every URL --database.
func opened[T any](store T, err error, name string) (T, error) {
	if err == nil {
		return store, nil
	}
	var none T
	if name == "--database" {
		return none, err
	}
	return none, renamedError{err, strings.ReplaceAll(err.Error(), "--database", name)}
}

type renamedError struct {
	error
	text string
}

func (e renamedError) Error() string { return e.text }
func (e renamedError) Unwrap() error { return e.error }
