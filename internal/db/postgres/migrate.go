package postgres

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"animalstore/internal/db"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations
var embedded embed.FS

// migrations has the files that create the tables and, from the second one on, change them.
var migrations fs.FS = embedded

const (
	// versionTable records the migrations that ran. Until the first release, the first
	// migration is edited in place, and with each edit the number in this name goes up by
	// one, so that databases from before the edit are refused.
	versionTable = "animalstore_version_9"
	// migrateAttempts is how often, once a second, a program checks whether another
	// one has finished its migration.
	migrateAttempts = 600
	// oldest is the server_version_num of the oldest supported PostgreSQL.
	oldest = 150000
)

// migrate creates or updates the tables, one program at a time. It refuses a database
// that can't hold a store reliably.
func migrate(ctx context.Context, config *pgx.ConnConfig, mustExist bool) error {
	config = config.Copy()
	for _, limit := range limits {
		config.RuntimeParams[limit] = "0" // a migration of a large table takes minutes
	}
	config.ConnectTimeout = max(config.ConnectTimeout, startTimeout)
	pool := stdlib.OpenDB(*config)
	defer pool.Close()
	if err := pool.PingContext(ctx); err != nil {
		return describeConnectError(err)
	}
	if err := checkServer(ctx, pool); err != nil {
		return err
	}
	provider, err := newProvider(pool)
	if err != nil {
		return err
	}
	known := knownVersion()
	switch version, err := currentVersion(ctx, pool); {
	case err != nil:
		return err
	case version == 0 && mustExist:
		return &db.OpenError{Reason: db.Absent, Text: "this database doesn't contain a store"}
	case version > known:
		return db.NewerError(version, known)
	case version == known:
		return nil
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate the tables: %w", err)
	}
	return nil
}

// newProvider returns what runs the migrations, one program at a time.
func newProvider(pool *sql.DB) (*goose.Provider, error) {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, err
	}
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockID(int64(migrateLock)), lock.WithLockTimeout(1, migrateAttempts))
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectPostgres, pool, files,
		goose.WithSessionLocker(locker), goose.WithTableName(versionTable), goose.WithDisableGlobalRegistry(true))
}

// Versions returns the version of a database's tables, or 0 without tables, and
// the version that this program needs.
func Versions(ctx context.Context, url string) (have, known int64, err error) {
	config, err := parseURL(url)
	if err != nil {
		return 0, 0, err
	}
	if have, err = storedVersion(ctx, config.ConnConfig); err != nil {
		return 0, 0, fmt.Errorf("%s: %w", location(config.ConnConfig), err)
	}
	return have, knownVersion(), nil
}

func storedVersion(ctx context.Context, config *pgx.ConnConfig) (int64, error) {
	pool := stdlib.OpenDB(*config)
	defer pool.Close()
	connecting, cancel := context.WithTimeout(ctx, 2*startTimeout*time.Duration(1+len(config.Fallbacks)))
	defer cancel()
	if err := pool.PingContext(connecting); err != nil {
		return 0, describeConnectError(err)
	}
	return currentVersion(ctx, pool)
}

// knownVersion returns the version of the tables that this program needs: the number of
// its last migration.
func knownVersion() (version int64) {
	files, err := fs.ReadDir(migrations, "migrations")
	if err == nil {
		_, err = fmt.Sscanf(files[len(files)-1].Name(), "%d_", &version)
	}
	if err != nil {
		panic(err) // they are embedded
	}
	return version
}

// currentVersion returns 0 for a database without our tables.
func currentVersion(ctx context.Context, pool *sql.DB) (version int64, err error) {
	var ours, development bool
	err = pool.QueryRowContext(ctx, `SELECT coalesce(bool_or(relname = $1), false), coalesce(bool_or(relname <> $1), false)
		FROM pg_class WHERE relname LIKE 'animalstore\_version%' AND relkind = 'r' AND pg_table_is_visible(oid)`, versionTable).Scan(&ours, &development)
	switch {
	case err != nil:
		return 0, err
	case development:
		return 0, db.ErrDevelopment
	case !ours:
		return 0, nil
	}
	err = pool.QueryRowContext(ctx, "SELECT coalesce(max(version_id), 0) FROM "+versionTable+" WHERE is_applied").Scan(&version)
	return version, err
}

// checkServer refuses a server that can't keep the promises of package db.
func checkServer(ctx context.Context, pool *sql.DB) error {
	var number int
	var version, encoding, commit string
	err := pool.QueryRowContext(ctx, `SELECT current_setting('server_version_num')::int, current_setting('server_version'),
		current_setting('server_encoding'), current_setting('synchronous_commit')`).Scan(&number, &version, &encoding, &commit)
	switch {
	case err != nil:
		return fmt.Errorf("query the server's version: %w", err)
	case number < oldest:
		return fmt.Errorf("the server is PostgreSQL %s: at least %d is needed", version, oldest/10000)
	case encoding != "UTF8":
		return fmt.Errorf("the database has the encoding %s, which can't represent every name: create it with ENCODING 'UTF8'", encoding)
	case commit == "off":
		return errors.New("synchronous_commit is off, so the server could lose what it has acknowledged: set it to on for this database or role")
	}
	return nil
}

// describeConnectError tells an operator why a server can't be reached.
func describeConnectError(err error) error {
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		if name, ok := strings.CutPrefix(refused.Message, "unsupported startup parameter: "); ok {
			return fmt.Errorf("PgBouncer refuses the setting %s: its ignore_startup_parameters must list "+
				"all that animalstore sends; see docs/scaling.md", name)
		}
		return fmt.Errorf("PostgreSQL refuses the connection: %s", refused.Message)
	}
	var attempts *pgconn.ConnectError
	if errors.As(err, &attempts) {
		err = attempts.Unwrap()
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all := joined.Unwrap()
		err = all[len(all)-1] // one is enough
	}
	return &db.OpenError{Reason: db.Unreachable, Text: "PostgreSQL cannot be reached: " + err.Error()}
}
