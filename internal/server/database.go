package server

import (
	"context"
	"fmt"
	"strings"

	"animalstore/internal/db"
	"animalstore/internal/db/postgres"
	"animalstore/internal/db/sqlite"
)

// CheckDatabaseURL rejects a URL that [OpenDatabase] can't open. The error uses the
// given name and doesn't repeat the URL, because it may contain a password.
func CheckDatabaseURL(name, url string) error {
	if postgres.Is(url) {
		if err := postgres.CheckURL(url); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	}
	if scheme, path, _ := strings.Cut(url, ":"); scheme != "sqlite" || path == "" {
		return fmt.Errorf("%s must be sqlite:FILE, such as sqlite:animalstore.db, or a URL like postgres://user@host:5432/database", name)
	}
	return nil
}

// OpenDatabase opens a database by its URL: sqlite:FILE or postgres://…. PostgreSQL
// ignores all options except MustExist.
func OpenDatabase(ctx context.Context, url string, opts sqlite.Options) (db.DB, error) {
	return openDatabase(ctx, url, opts, postgres.Options{MustExist: opts.MustExist})
}

func openDatabase(ctx context.Context, url string, embedded sqlite.Options, remote postgres.Options) (db.DB, error) {
	if err := CheckDatabaseURL("the database", url); err != nil {
		return nil, err
	}
	if postgres.Is(url) {
		return postgres.Open(ctx, url, remote)
	}
	return sqlite.Open(ctx, sqliteFile(url), embedded)
}

// RedactDatabaseURL returns a database's URL without credentials.
func RedactDatabaseURL(url string) string {
	if postgres.Is(url) {
		return postgres.Redacted(url)
	}
	return url
}

// OpenSource opens a snapshot of a database by its URL, which CheckDatabaseURL has accepted,
// to read the whole store. If alone is set, it refuses a database that a server is using.
func OpenSource(ctx context.Context, url string, alone bool) (db.Source, error) {
	if postgres.Is(url) {
		return postgres.OpenSource(ctx, url, alone)
	}
	return sqlite.OpenSource(ctx, sqliteFile(url), alone)
}

// OpenTarget opens a database by its URL, as OpenSource does, to fill it with a whole store.
func OpenTarget(ctx context.Context, url string) (db.Target, error) {
	if postgres.Is(url) {
		return postgres.OpenTarget(ctx, url)
	}
	return sqlite.OpenTarget(ctx, sqliteFile(url))
}

// DatabaseVersions returns the version of a database's tables, 0 if there are none,
// and the version that this program uses. It changes nothing.
func DatabaseVersions(ctx context.Context, url string) (current, latest int64, err error) {
	if postgres.Is(url) {
		return postgres.Versions(ctx, url)
	}
	have, known, err := sqlite.Versions(sqliteFile(url))
	return int64(have), int64(known), err
}

func sqliteFile(url string) string { return strings.TrimPrefix(url, "sqlite:") }

func (s *Server) openDatabase(ctx context.Context) error {
	fatal := s.cfg.Fatal
	if fatal == nil {
		fatal = func(err error) { panic(err) }
	}
	store, err := openDatabase(ctx, s.cfg.Database,
		sqlite.Options{Serve: true, Fatal: fatal, NoSync: s.cfg.Hooks.NoSync},
		postgres.Options{Timeout: s.cfg.Hooks.PostgresTimeout, Log: s.cfg.Log})
	if err != nil {
		return err
	}
	s.closers = append(s.closers, func() error {
		if err := waitUntil(s.deadline().Add(closeTimeout), store.Close); err != nil {
			return fmt.Errorf("close the database: %w", err)
		}
		return nil
	})
	s.engine = store
	if s.db = store; s.cfg.Hooks.WrapDB != nil {
		s.db = s.cfg.Hooks.WrapDB(store)
	}
	return nil
}
