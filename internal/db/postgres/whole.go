package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"animalstore/internal/db"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// Whole is a [db.Source], or a [db.Target], in a PostgreSQL database: one
// connection in one transaction.
type Whole struct {
	conn  *pgx.Conn
	tx    pgx.Tx
	fresh bool // what is written goes to files of its own
}

var _ db.Target = (*Whole)(nil)

// goodbye is how long the server is told that we leave.
const goodbye = 2 * time.Second

// OpenSource connects to a database to read it whole, without writing to it. If
// alone, it refuses one that others are connected to who may be servers. Unlike
// a file it cannot be kept from servers that start later.
func OpenSource(ctx context.Context, url string, alone bool) (_ *Whole, err error) {
	config, err := parseURL(url)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", place(config.ConnConfig), err)
		}
	}()
	have, known, err := versions(ctx, config.ConnConfig)
	switch {
	case err != nil:
		return nil, err
	case have == 0:
		return nil, errors.New("there is no store in this database yet")
	case have > known:
		return nil, newer(have, known)
	case have < known:
		return nil, fmt.Errorf("its tables are version %d, this program's %d. Bring them up to date first: animalstore db migrate", have, known)
	}
	w, err := connectWhole(ctx, config.ConnConfig)
	if err != nil {
		return nil, err
	}
	if alone {
		err = w.checkAlone(ctx)
	}
	if err == nil {
		err = w.begin(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	}
	if err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

// OpenTarget connects to a database to fill it whole, and makes its tables if
// need be. Nobody else gets at them until Close.
func OpenTarget(ctx context.Context, url string) (_ *Whole, err error) {
	config, err := parseURL(url)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", place(config.ConnConfig), err)
		}
	}()
	if err := migrate(ctx, config.ConnConfig, false); err != nil {
		return nil, err
	}
	w, err := connectWhole(ctx, config.ConnConfig)
	if err != nil {
		return nil, err
	}
	if err = w.begin(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite}); err == nil {
		err = w.lockTables(ctx)
	}
	if err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

// lockPatience is how long those who are just reading are waited for.
const lockPatience = 5 * time.Second

// lockTables keeps others out, those who read included: see Write.
func (w *Whole) lockTables(ctx context.Context) error {
	if _, err := w.tx.Exec(ctx, "SET LOCAL lock_timeout = "+milliseconds(lockPatience)); err != nil {
		return failed("lock the tables", err)
	}
	_, err := w.tx.Exec(ctx, "LOCK TABLE "+strings.Join(tableNames(), ", ")+" IN ACCESS EXCLUSIVE MODE")
	if hasCode(err, lockNotAvailable) {
		return errors.New("another program uses this database. Stop it first")
	}
	return failed("lock the tables", err)
}

func tableNames() (names []string) {
	for _, t := range db.Tables {
		names = append(names, t.Name)
	}
	return names
}

// connectWhole makes a connection whose statements may take as long as they need.
func connectWhole(ctx context.Context, config *pgx.ConnConfig) (*Whole, error) {
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
		return nil, explain(err)
	}
	return &Whole{conn: conn}, nil
}

func (w *Whole) begin(ctx context.Context, opts pgx.TxOptions) (err error) {
	w.tx, err = w.conn.BeginTx(ctx, opts)
	return failed("begin", err)
}

// others are sessions that may be those of a server.
const others = `SELECT coalesce(nullif(application_name, ''), 'unnamed') FROM pg_stat_activity
	WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
	AND (usename = current_user OR application_name = 'animalstore') ORDER BY 1`

// checkAlone gives those that have just left a moment to be gone. It comes before
// the transaction, which is to see everything they wrote.
func (w *Whole) checkAlone(ctx context.Context) error {
	for attempt := 0; ; attempt++ {
		rows, err := w.conn.Query(ctx, others)
		if err != nil {
			return failed("ask who else is connected", err)
		}
		names, err := pgx.CollectRows(rows, pgx.RowTo[string])
		switch {
		case err != nil:
			return failed("ask who else is connected", err)
		case len(names) == 0:
			return nil
		case attempt == 20:
			return fmt.Errorf("others are connected to this database (%s). Stop every server on it first", strings.Join(names, ", "))
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Versions are that of a database's tables, 0 if there are none, and the one
// that this program brings them to.
func Versions(ctx context.Context, url string) (have, known int64, err error) {
	config, err := parseURL(url)
	if err != nil {
		return 0, 0, err
	}
	if have, known, err = versions(ctx, config.ConnConfig); err != nil {
		err = fmt.Errorf("%s: %w", place(config.ConnConfig), err)
	}
	return have, known, err
}

func versions(ctx context.Context, config *pgx.ConnConfig) (have, known int64, err error) {
	files, err := migrations.ReadDir("migrations")
	if err != nil {
		return 0, 0, err
	}
	if _, err := fmt.Sscanf(files[len(files)-1].Name(), "%d_", &known); err != nil {
		return 0, 0, fmt.Errorf("the name of the last migration: %w", err)
	}
	pool := stdlib.OpenDB(*config)
	defer pool.Close()
	connecting, cancel := context.WithTimeout(ctx, 2*startTimeout*time.Duration(1+len(config.Fallbacks)))
	defer cancel()
	if err := pool.PingContext(connecting); err != nil {
		return 0, 0, explain(err)
	}
	have, err = currentVersion(ctx, pool)
	return have, known, err
}

// Close undoes what was not committed.
func (w *Whole) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), goodbye)
	defer cancel()
	return w.conn.Close(ctx)
}

// Query implements [db.Source].
func (w *Whole) Query(ctx context.Context, query string) (db.Cursor, error) {
	rows, err := w.tx.Query(ctx, query)
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
func (w *Whole) LastID(ctx context.Context, t *db.Table) (int64, error) {
	return lastID(ctx, w.tx, t.Name)
}

// SetLastID implements [db.Target]. Of a sequence that is restarted, unlike one
// that is set, nothing remains if the transaction is undone.
func (w *Whole) SetLastID(ctx context.Context, t *db.Table, id int64) error {
	doing := "set the last id of " + t.Name
	if _, err := w.tx.Exec(ctx, fmt.Sprintf("ALTER TABLE %s ALTER COLUMN id RESTART WITH %d", t.Name, max(id, 1))); err != nil {
		return failed(doing, err)
	}
	if id == 0 {
		return nil
	}
	_, err := w.tx.Exec(ctx, "SELECT nextval($1::regclass)", sequence(t.Name))
	return failed(doing, err)
}

// Write implements [db.Target].
func (w *Whole) Write(ctx context.Context, t *db.Table, rows db.Cursor) error {
	if err := w.beginAfresh(ctx); err != nil {
		return err
	}
	_, err := w.tx.CopyFrom(ctx, pgx.Identifier{t.Name}, t.ColumnNames(), rows)
	if rows.Err() != nil {
		return rows.Err()
	}
	return failed("copy", err)
}

// beginAfresh has PostgreSQL write empty tables to new files, which it removes at
// once if the transaction is undone. Otherwise what was written until then would
// take up the disk until a vacuum, and a disk that was full would stay so.
func (w *Whole) beginAfresh(ctx context.Context) error {
	if w.fresh {
		return nil
	}
	w.fresh = true
	var any bool
	query := "SELECT EXISTS (SELECT FROM " + strings.Join(tableNames(), ") OR EXISTS (SELECT FROM ") + ")"
	if err := w.tx.QueryRow(ctx, query).Scan(&any); err != nil || any {
		return failed("look for rows", err)
	}
	_, err := w.tx.Exec(ctx, "TRUNCATE "+strings.Join(tableNames(), ", "))
	return failed("begin afresh", err)
}

// Commit implements [db.Target].
func (w *Whole) Commit(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	forgetWarnings(w.conn)
	err := w.tx.Commit(context.WithoutCancel(ctx))
	if isConnection(err) { // whether it broke before or after, pgx says the same
		return fmt.Errorf("commit: %w: %w", db.ErrOutcomeUnknown, err)
	}
	return settled(w.conn, "commit", err)
}

// Checks implements [db.Source].
func (w *Whole) Checks() []db.Check {
	var behind []string
	for _, t := range db.Tables {
		if t.Serial {
			behind = append(behind, fmt.Sprintf(`SELECT '%[2]s go up to id ' || highest || ', but the last given is ' || last
				FROM (SELECT max(id) AS highest, (SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END FROM %[3]s) AS last FROM %[1]s) AS ids
				WHERE highest > last`, t.Name, t.Holds, sequence(t.Name)))
		}
	}
	return []db.Check{{Rule: "no id is given twice", Query: strings.Join(behind, " UNION ALL ")}}
}

// newer refuses a database that this program does not know.
func newer(have, known int64) error {
	return fmt.Errorf("this database was written by a newer animalstore (its tables are version %d, this program knows up to %d). Run that version", have, known)
}
