package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// Whole is a [db.Source], or a [db.Target], in a SQLite file: one connection in
// one transaction.
type Whole struct {
	conn  *sqlite.Conn
	lock  *os.File // held against servers; else nil
	store *DB      // of a target; else nil
}

var _ db.Target = (*Whole)(nil)

// OpenSource opens a file to read it whole, without writing to it. If alone, it
// refuses a file that is served, and keeps servers away until Close.
func OpenSource(ctx context.Context, path string, alone bool) (_ *Whole, err error) {
	path, have, err := find(path)
	if err != nil {
		return nil, err
	}
	switch known := len(schema.Migrations); {
	case have == 0:
		return nil, fmt.Errorf("%s: there is no store in this file yet", path)
	case have < known:
		return nil, fmt.Errorf("%s: its tables are version %d, this program's %d. Bring them up to date first: animalstore db migrate", path, have, known)
	}
	w := new(Whole)
	defer func() {
		if err != nil {
			w.Close()
		}
	}()
	if alone {
		if w.lock, err = lockFile(path + ".lock"); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	if w.conn, err = sqlite.OpenConn(path, sqlite.OpenReadOnly); err != nil {
		return nil, explain(path, err)
	}
	w.conn.SetBusyTimeout(busyTimeout)
	// The transaction reads the state of the store from its first read on.
	for _, statement := range []string{"PRAGMA temp_store = MEMORY", "BEGIN", "SELECT 1 FROM sqlite_schema"} {
		if err := sqlitex.ExecuteTransient(w.conn, statement, nil); err != nil {
			return nil, explain(path, err)
		}
	}
	return w, nil
}

// find returns the path of an existing file of ours, and its tables' version.
func find(path string) (_ string, version int, err error) {
	if err := checkVersion(); err != nil {
		return "", 0, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", 0, err
	}
	if err := makeFile(path, true); err != nil {
		return "", 0, err
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return "", 0, err
	}
	if err := checkOurs(path); err != nil {
		return "", 0, explain(path, err)
	}
	c, err := sqlite.OpenConn(path, sqlite.OpenReadOnly)
	if err != nil {
		return "", 0, explain(path, err)
	}
	defer c.Close()
	c.SetBusyTimeout(busyTimeout)
	err = sqlitex.ExecuteTransient(c, "PRAGMA user_version", &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
		version = stmt.ColumnInt(0)
		return nil
	}})
	if err != nil {
		return "", 0, explain(path, err)
	}
	return path, version, nil
}

// Versions are that of a file's tables, 0 if there are none or no file, and the
// one that this program brings them to.
func Versions(path string) (have, known int, err error) {
	known = len(schema.Migrations)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return 0, known, nil
	}
	_, have, err = find(path)
	return have, known, err
}

// OpenTarget opens a file to fill it whole, and makes it if need be. No server
// can be started on it until Close.
func OpenTarget(ctx context.Context, path string) (_ *Whole, err error) {
	w := new(Whole)
	defer func() {
		if err != nil {
			w.Close()
		}
	}()
	if w.store, err = Open(ctx, path, Options{Serve: true}); err != nil {
		return nil, err
	}
	if w.conn, err = w.store.connect(); err != nil {
		return nil, explain(path, err)
	}
	if err := sqlitex.ExecuteTransient(w.conn, "BEGIN IMMEDIATE", nil); err != nil {
		return nil, fmt.Errorf("begin: %w", classify(err))
	}
	return w, nil
}

// Close undoes what was not committed.
func (w *Whole) Close() error {
	var errs []error
	if w.conn != nil {
		w.conn.SetInterrupt(nil)
		errs = append(errs, w.conn.Close())
	}
	if w.store != nil {
		errs = append(errs, w.store.Close())
	}
	if w.lock != nil {
		errs = append(errs, w.lock.Close())
	}
	return errors.Join(errs...)
}

// Query implements [db.Source].
func (w *Whole) Query(ctx context.Context, query string) (db.Cursor, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w.conn.SetInterrupt(ctx.Done())
	stmt, _, err := w.conn.PrepareTransient(query)
	if err != nil {
		return nil, classify(err)
	}
	return &cursor{ctx: ctx, stmt: stmt}, nil
}

// cursor is a [db.Cursor] over a statement's rows.
type cursor struct {
	ctx    context.Context
	stmt   *sqlite.Stmt // nil when closed
	values []any
	err    error
}

func (c *cursor) Next() bool {
	if c.stmt == nil || c.err != nil {
		return false
	}
	more, err := c.stmt.Step()
	if err != nil {
		if c.err = classify(err); c.ctx.Err() != nil {
			c.err = c.ctx.Err()
		}
	}
	return more && err == nil
}

func (c *cursor) Values() ([]any, error) {
	c.values = c.values[:0]
	for i := range c.stmt.ColumnCount() {
		var v any
		switch kind := c.stmt.ColumnType(i); kind {
		case sqlite.TypeInteger:
			v = c.stmt.ColumnInt64(i)
		case sqlite.TypeText:
			v = c.stmt.ColumnText(i)
		case sqlite.TypeBlob:
			b := make([]byte, c.stmt.ColumnLen(i))
			c.stmt.ColumnBytes(i, b)
			v = b
		case sqlite.TypeNull:
		default:
			return nil, fmt.Errorf("column %s holds a %v", c.stmt.ColumnName(i), kind)
		}
		c.values = append(c.values, v)
	}
	return c.values, nil
}

func (c *cursor) Err() error { return c.err }

func (c *cursor) Close() {
	if c.stmt != nil {
		c.stmt.Finalize() // repeats the error of the last step
		c.stmt = nil
	}
}

// LastID implements [db.Source].
func (w *Whole) LastID(_ context.Context, t *db.Table) (int64, error) {
	return reserve(w.conn, t.Name, 0)
}

// SetLastID implements [db.Target]. The rows written before have made SQLite
// keep a number for the table, unless there were none.
func (w *Whole) SetLastID(_ context.Context, t *db.Table, id int64) error {
	err := sqlitex.Execute(w.conn, "DELETE FROM sqlite_sequence WHERE name = ?", &sqlitex.ExecOptions{Args: []any{t.Name}})
	if err == nil && id > 0 {
		err = sqlitex.Execute(w.conn, "INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", &sqlitex.ExecOptions{Args: []any{t.Name, id}})
	}
	if err != nil {
		return fmt.Errorf("set the last id of %s: %w", t.Name, classify(err))
	}
	return nil
}

// Write implements [db.Target].
func (w *Whole) Write(ctx context.Context, t *db.Table, rows db.Cursor) error {
	names := t.ColumnNames()
	marks := strings.Repeat(", ?", len(names))[2:]
	stmt, err := w.conn.Prepare("INSERT INTO " + t.Name + " (" + strings.Join(names, ", ") + ") VALUES (" + marks + ")")
	if err != nil {
		return classify(err)
	}
	defer stmt.Reset()
	w.conn.SetInterrupt(ctx.Done())
	for rows.Next() {
		values, err := rows.Values()
		if err != nil {
			return err
		}
		if err := insertRow(stmt, values); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return classify(err)
		}
	}
	return rows.Err()
}

func insertRow(stmt *sqlite.Stmt, values []any) error {
	for i, v := range values {
		switch v := v.(type) {
		case int64:
			stmt.BindInt64(i+1, v)
		case string:
			stmt.BindText(i+1, v)
		case []byte:
			stmt.BindBytes(i+1, v)
		default:
			stmt.BindNull(i + 1)
		}
	}
	if _, err := stmt.Step(); err != nil {
		stmt.Reset()
		return err
	}
	return stmt.Reset()
}

// Commit implements [db.Target].
func (w *Whole) Commit(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w.conn.SetInterrupt(nil)
	if err := sqlitex.ExecuteTransient(w.conn, "COMMIT", nil); err != nil {
		return fmt.Errorf("commit: %w", classify(err))
	}
	return nil
}

// Checks implements [db.Source].
func (w *Whole) Checks() []db.Check {
	all := []db.Check{
		{Rule: "the file is intact", Query: "SELECT integrity_check FROM pragma_integrity_check WHERE integrity_check <> 'ok'"},
		{Rule: "every reference leads to a row", Query: `SELECT "table" || ' refers to a row of ' || parent || ' that is not there' FROM pragma_foreign_key_check`},
	}
	var behind []string
	for _, t := range db.Tables {
		if t.Serial {
			behind = append(behind, fmt.Sprintf(`SELECT '%[2]s go up to id ' || highest || ', but the last given is ' || last
				FROM (SELECT max(id) AS highest, coalesce((SELECT max(seq) FROM sqlite_sequence WHERE name = '%[1]s'), 0) AS last FROM %[1]s) AS ids
				WHERE highest > last`, t.Name, t.Holds))
		}
	}
	return append(all, db.Check{Rule: "no id is given twice", Query: strings.Join(behind, " UNION ALL ")})
}
