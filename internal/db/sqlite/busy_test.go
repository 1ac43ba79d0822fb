package sqlite

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// wantBusyTimeout fails the test unless a connection waits for other processes, and
// not forever, as the driver does by default.
func wantBusyTimeout(t *testing.T, name string, c *sqlite.Conn) {
	t.Helper()
	var got time.Duration
	err := sqlitex.Execute(c, "PRAGMA busy_timeout", &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
		got = time.Duration(stmt.ColumnInt64(0)) * time.Millisecond
		return nil
	}})
	if err != nil || got != busyTimeout {
		t.Errorf("%s has a busy timeout of %v (%v), want %v", name, got, err, busyTimeout)
	}
}

func TestEveryConnectionHasABusyTimeout(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	for name, opts := range map[string]Options{"a server": {Serve: true}, "a command": {}} {
		d := mustOpen(t, path, opts)
		wantBusyTimeout(t, "the writer of "+name, d.writer.conn)
		forEachReader(d, func() {
			d.read(t.Context(), func(c *sqlite.Conn) error {
				wantBusyTimeout(t, "a reader of "+name, c)
				return nil
			})
		})
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	source, err := OpenSource(t.Context(), path, false)
	if err != nil {
		t.Fatal(err)
	}
	wantBusyTimeout(t, "a source", source.conn)
	if err := source.Close(); err != nil {
		t.Fatal(err)
	}
	target, err := OpenTarget(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	wantBusyTimeout(t, "a target", target.conn)
	wantBusyTimeout(t, "the writer of a target", target.store.writer.conn)
	if err := target.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestBusyIsUnavailable: a write that another process keeps waiting can be retried.
func TestBusyIsUnavailable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	d := mustOpen(t, path, Options{})
	d.writer.conn.SetBusyTimeout(time.Millisecond) // nobody writes yet
	other, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := sqlitex.Execute(other, "BEGIN IMMEDIATE", nil); err != nil {
		t.Fatal(err)
	}
	if err := d.writer.do(t.Context(), insertNamed("never", 0)); !errors.Is(err, db.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
}
