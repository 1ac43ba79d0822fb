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

// Snapshot is a [db.Source] or [db.Target] for a SQLite file: one connection with
// one open transaction.
type Snapshot struct {
	conn  *sqlite.Conn
	lock  *serverLock // keeps servers out; may be nil
	store *DB         // of a target, otherwise nil
}

var _ db.Target = (*Snapshot)(nil)

// OpenSource opens a snapshot of a file for reading. If alone is set, it refuses a
// file that a server is using, and keeps servers out until Close.
func OpenSource(ctx context.Context, path string, alone bool) (_ *Snapshot, err error) {
	path, err = findStore(path)
	if err != nil {
		return nil, err
	}
	s := new(Snapshot)
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	if alone {
		if s.lock, err = lockServer(path); err != nil {
			return nil, describeOpenError(path, err)
		}
	}
	if s.conn, err = openSnapshot(path); err != nil {
		return nil, describeOpenError(path, err)
	}
	return s, nil
}

// findStore returns the path of an existing store that has the tables of this version.
func findStore(path string) (string, error) {
	path, version, err := findFile(path)
	switch known := len(schema.Migrations); {
	case err != nil:
		return "", err
	case version == 0:
		return "", fmt.Errorf("%s: this file doesn't contain a store yet", path)
	case version < known:
		return "", fmt.Errorf("%s: %w", path, db.OutdatedError(int64(version), int64(known)))
	}
	return path, nil
}

// findFile returns the path of an existing file and the version of its tables, 0 if it
// has none.
func findFile(path string) (_ string, version int, err error) {
	if err := checkVersion(); err != nil {
		return "", 0, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", 0, err
	}
	if err := createFile(path, true); err != nil {
		return "", 0, err
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return "", 0, err
	}
	if err := refuseAlias(path); err != nil {
		return "", 0, err
	}
	if version, err = checkOurs(path); err != nil {
		return "", 0, describeOpenError(path, err)
	}
	return path, version, nil
}

// Versions returns the version of a file's tables, or 0 without tables or file,
// and the version that this program needs.
func Versions(path string) (have, known int, err error) {
	known = len(schema.Migrations)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return 0, known, nil
	}
	_, have, err = findFile(path)
	return have, known, err
}

// OpenTarget opens a file to fill it, and creates it if it doesn't exist. It keeps
// servers out until Close.
func OpenTarget(ctx context.Context, path string) (_ *Snapshot, err error) {
	s := new(Snapshot)
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	if s.store, err = Open(ctx, path, Options{Serve: true}); err != nil {
		return nil, err
	}
	if s.conn, err = s.store.connect(); err != nil {
		return nil, describeOpenError(path, err)
	}
	if err := sqlitex.ExecuteTransient(s.conn, "BEGIN IMMEDIATE", nil); err != nil {
		return nil, fmt.Errorf("begin: %w", classify(err))
	}
	return s, nil
}

// Close rolls back what was not committed.
func (s *Snapshot) Close() error {
	var errs []error
	if s.conn != nil {
		s.conn.SetInterrupt(nil)
		errs = append(errs, s.conn.Close())
	}
	if s.store != nil {
		errs = append(errs, s.store.Close())
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
	}
	return errors.Join(errs...)
}

// Query implements [db.Source].
func (s *Snapshot) Query(ctx context.Context, query string) (db.Cursor, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.conn.SetInterrupt(ctx.Done())
	stmt, _, err := s.conn.PrepareTransient(query)
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
			return nil, fmt.Errorf("column %s contains a %v", c.stmt.ColumnName(i), kind)
		}
		c.values = append(c.values, v)
	}
	return c.values, nil
}

func (c *cursor) Err() error { return c.err }

func (c *cursor) Close() {
	if c.stmt != nil {
		c.stmt.Finalize() // returns the error of the last step again
		c.stmt = nil
	}
}

// LastID implements [db.Source].
func (s *Snapshot) LastID(_ context.Context, t *db.Table) (int64, error) {
	return reserve(s.conn, t.Name, 0)
}

// SetLastID implements [db.Target]. SQLite has a row for the table in
// sqlite_sequence only if rows were written before.
func (s *Snapshot) SetLastID(_ context.Context, t *db.Table, id int64) error {
	err := sqlitex.Execute(s.conn, "DELETE FROM sqlite_sequence WHERE name = ?", &sqlitex.ExecOptions{Args: []any{t.Name}})
	if err == nil && id > 0 {
		err = sqlitex.Execute(s.conn, "INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", &sqlitex.ExecOptions{Args: []any{t.Name, id}})
	}
	if err != nil {
		return fmt.Errorf("set the last id of %s: %w", t.Name, classify(err))
	}
	return nil
}

// Write implements [db.Target].
func (s *Snapshot) Write(ctx context.Context, t *db.Table, rows db.Cursor) error {
	names := t.ColumnNames()
	marks := strings.Repeat(", ?", len(names))[2:]
	stmt, err := s.conn.Prepare("INSERT INTO " + t.Name + " (" + strings.Join(names, ", ") + ") VALUES (" + marks + ")")
	if err != nil {
		return classify(err)
	}
	defer stmt.Reset()
	s.conn.SetInterrupt(ctx.Done())
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
	bind(stmt, values)
	if _, err := stmt.Step(); err != nil {
		stmt.Reset()
		return err
	}
	return stmt.Reset()
}

// Commit implements [db.Target].
func (s *Snapshot) Commit(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.conn.SetInterrupt(nil)
	if err := sqlitex.ExecuteTransient(s.conn, "COMMIT", nil); err != nil {
		return fmt.Errorf("commit: %w", classify(err))
	}
	return nil
}

// Checks implements [db.Source].
func (s *Snapshot) Checks() []db.Check {
	all := []db.Check{
		{Rule: "the file is intact", Query: "SELECT integrity_check FROM pragma_integrity_check WHERE integrity_check <> 'ok'"},
		{Rule: "every reference points to a row", Query: `SELECT "table" || ' refers to a row of ' || parent || ' that doesn''t exist' FROM pragma_foreign_key_check`},
		{Rule: "the data of every event is valid JSON", Query: "SELECT 'event ' || id FROM events WHERE NOT json_valid(data)"},
	}
	var reused []string
	for _, t := range db.Tables {
		if t.Serial {
			reused = append(reused, fmt.Sprintf(`SELECT '%[2]s go up to id ' || highest || ', but the last assigned id is ' || last
				FROM (SELECT max(id) AS highest, coalesce((SELECT max(seq) FROM sqlite_sequence WHERE name = '%[1]s'), 0) AS last FROM %[1]s) AS ids
				WHERE highest > last`, t.Name, t.Holds))
		}
	}
	return append(all, db.Check{Rule: "no id is assigned twice", Query: strings.Join(reused, " UNION ALL ")})
}
