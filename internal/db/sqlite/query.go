package sqlite

import (
	"fmt"

	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
)

// These run one statement each. doing says in an error what failed. They bind and step
// directly, because sqlitex takes longer for that than SQLite does to find a row.

// prepare returns a statement with these arguments. The connection keeps it for reuse.
func prepare(c *sqlite.Conn, query string, args []any) (*sqlite.Stmt, error) {
	stmt, err := c.Prepare(query)
	if err != nil {
		return nil, err
	}
	bind(stmt, args)
	return stmt, nil
}

func bind(stmt *sqlite.Stmt, args []any) {
	for i, arg := range args {
		switch v := arg.(type) {
		case int64:
			stmt.BindInt64(i+1, v)
		case int:
			stmt.BindInt64(i+1, int64(v))
		case bool:
			stmt.BindBool(i+1, v)
		case string:
			stmt.BindText(i+1, v)
		case []byte:
			stmt.BindBytes(i+1, v)
		case nil:
			stmt.BindNull(i + 1)
		default:
			panic(fmt.Sprintf("a statement can't have an argument of type %T", arg))
		}
	}
}

// execute runs a statement that returns nothing.
func execute(c *sqlite.Conn, doing, query string, args ...any) error {
	return selectEach(c, doing, func(*sqlite.Stmt) error { return nil }, query, args...)
}

// selectEach calls f with each row.
func selectEach(c *sqlite.Conn, doing string, f func(*sqlite.Stmt) error, query string, args ...any) error {
	stmt, err := prepare(c, query, args)
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	defer stmt.Reset()
	for {
		more, err := stmt.Step()
		if err != nil {
			return fmt.Errorf("%s: %w", doing, err)
		}
		if !more {
			return nil
		}
		if err := f(stmt); err != nil {
			return err
		}
	}
}

// selectAll returns all rows.
func selectAll[Row any](c *sqlite.Conn, doing string, scan func(*sqlite.Stmt) (Row, error), query string, args ...any) ([]Row, error) {
	rows := make([]Row, 0, 20) // the usual page
	err := selectEach(c, doing, func(stmt *sqlite.Stmt) error {
		row, err := scan(stmt)
		rows = append(rows, row)
		return err
	}, query, args...)
	if err != nil {
		return nil, err
	}
	return rows, nil
}

// selectOne returns the only row, or [db.ErrNotFound].
func selectOne[Row any](c *sqlite.Conn, doing string, scan func(*sqlite.Stmt) (Row, error), query string, args ...any) (row Row, err error) {
	found := false
	err = selectEach(c, doing, func(stmt *sqlite.Stmt) (err error) {
		found = true
		row, err = scan(stmt)
		return err
	}, query, args...)
	if err == nil && !found {
		err = db.ErrNotFound
	}
	return row, err
}

// selectInt returns the number that a query selects, or 0 if there is no row.
func selectInt(c *sqlite.Conn, doing, query string, args ...any) (n int64, err error) {
	err = selectEach(c, doing, func(stmt *sqlite.Stmt) error { n = stmt.ColumnInt64(0); return nil }, query, args...)
	return n, err
}
