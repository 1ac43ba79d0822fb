package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"animalstore/internal/db"

	"github.com/jackc/pgx/v5"
)

// Snapshot is a [db.Source] or [db.Target] for a PostgreSQL database: one
// connection with one open transaction.
type Snapshot struct {
	conn  *pgx.Conn
	tx    pgx.Tx
	fresh bool // the tables were given new files
}

var _ db.Target = (*Snapshot)(nil)

// closeTimeout is how long Close waits for the server.
const closeTimeout = 2 * time.Second

// OpenSource opens a snapshot of a database for reading. If alone is set, it
// refuses a database with other connections that may be those of a server. Unlike
// with a file, it can't keep out servers that start later.
func OpenSource(ctx context.Context, url string, alone bool) (_ *Snapshot, err error) {
	config, err := parseURL(url)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", location(config.ConnConfig), err)
		}
	}()
	known := knownVersion()
	have, err := storedVersion(ctx, config.ConnConfig)
	switch {
	case err != nil:
		return nil, err
	case have == 0:
		return nil, errors.New("this database doesn't contain a store yet")
	case have > known:
		return nil, db.NewerError(have, known)
	case have < known:
		return nil, db.OutdatedError(have, known)
	}
	s, err := connectSnapshot(ctx, config.ConnConfig)
	if err != nil {
		return nil, err
	}
	if alone {
		if err = s.checkAlone(ctx); err == nil {
			err = publishAll(ctx, s.conn) // what the last server left in the queue
		}
	}
	if err == nil {
		err = s.begin(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// OpenTarget opens a database to fill it, and creates its tables if they don't
// exist. It locks them until Close.
func OpenTarget(ctx context.Context, url string) (_ *Snapshot, err error) {
	config, err := parseURL(url)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", location(config.ConnConfig), err)
		}
	}()
	if err := migrate(ctx, config.ConnConfig, false); err != nil {
		return nil, err
	}
	s, err := connectSnapshot(ctx, config.ConnConfig)
	if err != nil {
		return nil, err
	}
	if err = s.begin(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite}); err == nil {
		err = s.lockTables(ctx)
	}
	if err == nil { // what waits in the queue shows that the target isn't empty
		_, err = s.tx.Exec(ctx, publishEvents, int64(math.MaxInt64))
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// lockTimeout is how long lockTables waits for others to finish reading. A test shortens it.
var lockTimeout = 5 * time.Second

// lockTables keeps others out, including readers: see useNewFiles.
func (s *Snapshot) lockTables(ctx context.Context) error {
	if _, err := s.tx.Exec(ctx, "SET LOCAL lock_timeout = "+milliseconds(lockTimeout)); err != nil {
		return failed("lock the tables", err)
	}
	_, err := s.tx.Exec(ctx, "LOCK TABLE "+strings.Join(tableNames(), ", ")+", event_queue IN ACCESS EXCLUSIVE MODE")
	if hasCode(err, lockNotAvailable) {
		return errors.New("another program is using this database. Stop it first")
	}
	return failed("lock the tables", err)
}

func tableNames() (names []string) {
	for _, t := range db.Tables {
		names = append(names, t.Name)
	}
	return names
}

// connectSnapshot opens a connection without limits on how long statements take.
func connectSnapshot(ctx context.Context, config *pgx.ConnConfig) (*Snapshot, error) {
	config = config.Copy()
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = startTimeout
	}
	config.OnNotice = noteWarning
	for name, value := range map[string]string{
		"client_min_messages":                 "warning",
		"lock_timeout":                        "0",
		"statement_timeout":                   "0",
		"idle_in_transaction_session_timeout": "0",
	} {
		config.RuntimeParams[name] = value
	}
	if _, set := config.RuntimeParams["application_name"]; !set {
		config.RuntimeParams["application_name"] = "animalstore"
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, describeConnectError(err)
	}
	return &Snapshot{conn: conn}, nil
}

func (s *Snapshot) begin(ctx context.Context, opts pgx.TxOptions) (err error) {
	s.tx, err = s.conn.BeginTx(ctx, opts)
	return failed("begin", err)
}

// otherSessions selects the sessions that may belong to a server.
const otherSessions = `SELECT coalesce(nullif(application_name, ''), 'unnamed') FROM pg_stat_activity
	WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
	AND (usename = current_user OR application_name = 'animalstore') ORDER BY 1`

// checkAlone refuses a database that others are connected to. It retries for a
// moment, because sessions that just ended take time to disappear. It runs before
// the transaction begins, so that the snapshot includes everything they wrote.
func (s *Snapshot) checkAlone(ctx context.Context) error {
	for attempt := 0; ; attempt++ {
		rows, err := s.conn.Query(ctx, otherSessions)
		if err != nil {
			return failed("list the sessions", err)
		}
		names, err := pgx.CollectRows(rows, pgx.RowTo[string])
		switch {
		case err != nil:
			return failed("list the sessions", err)
		case len(names) == 0:
			return nil
		case attempt == 20:
			return fmt.Errorf("other programs are connected to this database (%s). Stop every server on it first", strings.Join(names, ", "))
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Close rolls back what was not committed.
func (s *Snapshot) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return s.conn.Close(ctx)
}

// Query implements [db.Source].
func (s *Snapshot) Query(ctx context.Context, query string) (db.Cursor, error) {
	rows, err := s.tx.Query(ctx, query)
	if err != nil {
		return nil, failed("query", err)
	}
	return cursor{rows}, nil
}

// cursor is a [db.Cursor] over the rows of a query.
type cursor struct{ pgx.Rows }

func (c cursor) Values() ([]any, error) {
	values, err := c.Rows.Values()
	if err != nil {
		return nil, failed("read a row", err)
	}
	for i, v := range values {
		if small, ok := v.(int16); ok {
			values[i] = int64(small)
		}
	}
	return values, nil
}

func (c cursor) Err() error { return failed("query", c.Rows.Err()) }

// LastID implements [db.Source].
func (s *Snapshot) LastID(ctx context.Context, t *db.Table) (int64, error) {
	return lastID(ctx, s.tx, t.Name)
}

// SetLastID implements [db.Target]. Restarting a sequence is rolled back with the
// transaction, unlike setting it with setval.
func (s *Snapshot) SetLastID(ctx context.Context, t *db.Table, id int64) error {
	doing := "set the last id of " + t.Name
	if _, err := s.tx.Exec(ctx, fmt.Sprintf("ALTER TABLE %s ALTER COLUMN id RESTART WITH %d", t.Name, max(id, 1))); err != nil {
		return failed(doing, err)
	}
	if id == 0 {
		return nil
	}
	_, err := s.tx.Exec(ctx, "SELECT nextval($1::regclass)", sequence(t.Name))
	return failed(doing, err)
}

// Write implements [db.Target].
func (s *Snapshot) Write(ctx context.Context, t *db.Table, rows db.Cursor) error {
	if err := s.useNewFiles(ctx); err != nil {
		return err
	}
	_, err := s.tx.CopyFrom(ctx, pgx.Identifier{t.Name}, t.ColumnNames(), rows)
	if rows.Err() != nil {
		return rows.Err()
	}
	return failed("copy", err)
}

// useNewFiles truncates empty tables, so that PostgreSQL writes them to new files
// and removes those right away on a rollback. Otherwise the rows written so far
// would occupy the disk until a vacuum, and a full disk would stay full.
func (s *Snapshot) useNewFiles(ctx context.Context) error {
	if s.fresh {
		return nil
	}
	s.fresh = true
	var hasRows bool
	query := "SELECT EXISTS (SELECT FROM " + strings.Join(tableNames(), ") OR EXISTS (SELECT FROM ") + ")"
	if err := s.tx.QueryRow(ctx, query).Scan(&hasRows); err != nil || hasRows {
		return failed("look for rows", err)
	}
	_, err := s.tx.Exec(ctx, "TRUNCATE "+strings.Join(tableNames(), ", "))
	return failed("truncate the tables", err)
}

// Commit implements [db.Target].
func (s *Snapshot) Commit(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	forgetWarnings(s.conn)
	err := s.tx.Commit(context.WithoutCancel(ctx))
	if isConnection(err) { // pgx returns the same error whether it broke before or after
		return fmt.Errorf("commit: %w: %w", db.ErrOutcomeUnknown, err)
	}
	return settled(s.conn, "commit", err)
}

// Checks implements [db.Source].
func (s *Snapshot) Checks() []db.Check {
	var reused []string
	for _, t := range db.Tables {
		if t.Serial {
			reused = append(reused, fmt.Sprintf(`SELECT '%[2]s go up to id ' || highest || ', but the last assigned id is ' || last
				FROM (SELECT max(id) AS highest, (SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END FROM %[3]s) AS last FROM %[1]s) AS ids
				WHERE highest > last`, t.Name, t.Holds, sequence(t.Name)))
		}
	}
	all := []db.Check{
		{Rule: "no id is assigned twice", Query: strings.Join(reused, " UNION ALL ")},
		{Rule: "every event that waits for its number is complete", Query: `
			SELECT 'event of ' || subject_id || ' in the queue' FROM event_queue WHERE data NOT LIKE '{"id":' || subject_id || ',%}'`},
	}
	if major, _, _ := strings.Cut(s.conn.PgConn().ParameterStatus("server_version"), "."); major >= "16" { // which can check this
		all = append(all, db.Check{Rule: "the data of every event is valid JSON", Query: "SELECT 'event ' || id FROM events WHERE data IS NOT JSON OBJECT"})
	}
	return all
}
