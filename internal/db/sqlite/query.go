package sqlite

import (
	"context"
	"encoding/json"
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
		case []int64: // for json_each
			array, err := json.Marshal(v)
			if err != nil {
				panic(err) // numbers can always be encoded
			}
			stmt.BindText(i+1, string(array))
		case *int64:
			if v == nil {
				stmt.BindNull(i + 1)
			} else {
				stmt.BindInt64(i+1, *v)
			}
		case nil:
			stmt.BindNull(i + 1)
		default:
			panic(fmt.Sprintf("a statement can't have an argument of type %T", arg))
		}
	}
}

// execute runs a statement that returns nothing.
func execute(c *sqlite.Conn, doing, query string, args ...any) error {
	return selectEach(c, doing, func(row) error { return nil }, query, args...)
}

// row is a [db.Row] of a statement.
type row struct{ *sqlite.Stmt }

// Scan implements [db.Row].
func (r row) Scan(dest ...any) error {
	for i, to := range dest {
		switch to := to.(type) {
		case *int64:
			*to = r.ColumnInt64(i)
		case *int:
			*to = r.ColumnInt(i)
		case *string:
			*to = r.ColumnText(i)
		case *[]byte:
			*to = make([]byte, r.ColumnLen(i))
			r.ColumnBytes(i, *to)
		default:
			panic(fmt.Sprintf("a column can't be scanned into a %T", to))
		}
	}
	return nil
}

// selectEach calls f with each row.
func selectEach(c *sqlite.Conn, doing string, f func(row) error, query string, args ...any) error {
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
		if err := f(row{stmt}); err != nil {
			return err
		}
	}
}

// selectAll returns all rows.
func selectAll[T any](c *sqlite.Conn, doing string, scan func(db.Row) (T, error), query string, args ...any) ([]T, error) {
	all := make([]T, 0, 20) // the usual page
	err := selectEach(c, doing, func(r row) error {
		one, err := scan(r)
		all = append(all, one)
		return err
	}, query, args...)
	if err != nil {
		return nil, err
	}
	return all, nil
}

// selectOne returns the only row, or [db.ErrNotFound].
func selectOne[T any](c *sqlite.Conn, doing string, scan func(db.Row) (T, error), query string, args ...any) (one T, err error) {
	found := false
	err = selectEach(c, doing, func(r row) (err error) {
		found = true
		one, err = scan(r)
		return err
	}, query, args...)
	if err == nil && !found {
		err = db.ErrNotFound
	}
	return one, err
}

// selectInt returns the number that a query selects, or 0 if there is no row.
func selectInt(c *sqlite.Conn, doing, query string, args ...any) (n int64, err error) {
	err = selectEach(c, doing, func(r row) error { return r.Scan(&n) }, query, args...)
	return n, err
}

// list is selectAll with a connection for reading.
func list[T any](ctx context.Context, d *DB, doing string, scan func(db.Row) (T, error), query string, args ...any) ([]T, error) {
	return resultOf(ctx, d.read, func(c *sqlite.Conn) ([]T, error) { return selectAll(c, doing, scan, query, args...) })
}

// readOne is selectOne with a connection for reading.
func readOne[T any](ctx context.Context, d *DB, doing string, scan func(db.Row) (T, error), query string, args ...any) (T, error) {
	return resultOf(ctx, d.read, func(c *sqlite.Conn) (T, error) { return selectOne(c, doing, scan, query, args...) })
}
