//go:build linux

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// asked runs a query for one value in PostgreSQL.
func asked[T any](t testing.TB, database, query string) (answer T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if err := conn.QueryRow(ctx, query).Scan(&answer); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return answer
}

// texts are the rows of a query for one text.
func texts(t testing.TB, c *sqlite.Conn, query string) (all []string) {
	t.Helper()
	err := sqlitex.ExecuteTransient(c, query, &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
		all = append(all, stmt.ColumnText(0))
		return nil
	}})
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return all
}

// wantSameContent compares every row of every table of a SQLite file with the
// same in PostgreSQL, and the ids that come next, one of which it takes. It asks
// both by itself: it has nothing in common with the program's own comparison. It
// returns how many rows there are.
func wantSameContent(t *testing.T, file, database string) (rows int64) {
	t.Helper()
	plain, err := sqlite.OpenConn(file, sqlite.OpenReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	// The version of the keys identifies a state of one store, so each has its own.
	tables := texts(t, plain, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' AND name <> 'keys_version'")
	if len(tables) < 8 {
		t.Fatalf("the file has the tables %q, want at least 8", tables)
	}
	for _, table := range tables {
		columns := texts(t, plain, "SELECT name FROM pragma_table_info('"+table+"') ORDER BY cid")
		key := texts(t, plain, "SELECT name FROM pragma_table_info('"+table+"') WHERE pk > 0 ORDER BY pk")
		query := "SELECT " + strings.Join(columns, ", ") + " FROM " + table + " ORDER BY " + strings.Join(key, ", ")
		rows += sameRows(t, plain, conn, query)
	}
	err = sqlitex.ExecuteTransient(plain, "SELECT name, seq FROM sqlite_sequence", &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
		table, want := stmt.ColumnText(0), stmt.ColumnInt64(1)
		if got := asked[int64](t, database, "SELECT nextval('"+table+"_id_seq')"); got != want+1 {
			t.Errorf("the next id of %s is %d, want %d", table, got, want+1)
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// sameRows asks both the same and compares the responses, row by row.
func sameRows(t *testing.T, plain *sqlite.Conn, conn *pgx.Conn, query string) (n int64) {
	t.Helper()
	moved, err := conn.Query(context.Background(), query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer moved.Close()
	differ := 0
	err = sqlitex.ExecuteTransient(plain, query, &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
		n++
		if !moved.Next() {
			return fmt.Errorf("PostgreSQL has fewer than %d rows (%v)", n, moved.Err())
		}
		values, err := moved.Values()
		if err != nil {
			return err
		}
		for i, got := range values {
			if !sameValue(stmt, i, got) {
				if differ++; differ <= 3 {
					t.Errorf("%s: row %d: %s is %v, want %q", query, n, stmt.ColumnName(i), got, stmt.ColumnText(i))
				}
			}
		}
		return nil
	}})
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	if moved.Next() {
		t.Errorf("%s: PostgreSQL has more than %d rows", query, n)
	}
	return n
}

func sameValue(stmt *sqlite.Stmt, i int, got any) bool {
	switch got := got.(type) {
	case int64:
		return got == stmt.ColumnInt64(i)
	case int16:
		return int64(got) == stmt.ColumnInt64(i)
	case string:
		return got == stmt.ColumnText(i)
	case []byte:
		want := make([]byte, stmt.ColumnLen(i))
		stmt.ColumnBytes(i, want)
		return bytes.Equal(got, want)
	}
	return false
}
