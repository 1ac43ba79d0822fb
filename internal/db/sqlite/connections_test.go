package sqlite

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// wantPragmas checks settings of a connection.
func wantPragmas(t *testing.T, name string, c *sqlite.Conn, pragmas ...string) {
	t.Helper()
	want := map[string]string{
		"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "journal_size_limit": fmt.Sprint(checkpointPagesForce * 4096),
		"busy_timeout": fmt.Sprint(busyTimeout.Milliseconds()), // the driver's default is forever
	}
	for _, pragma := range pragmas {
		got, err := sqlitex.ResultText(c.Prep("PRAGMA " + pragma))
		if err != nil || got != want[pragma] {
			t.Errorf("%s: %s = %q, %v, want %q", name, pragma, got, err, want[pragma])
		}
	}
}

// TestConnections: every connection that can write is durable, not only the one that does,
// and every connection waits for other processes, but not forever.
func TestConnections(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	for name, opts := range map[string]Options{"a server": {Serve: true}, "a command": {}} {
		d := mustOpen(t, path, opts)
		check := func(c *sqlite.Conn) error {
			wantPragmas(t, name, c, "journal_mode", "synchronous", "foreign_keys", "journal_size_limit", "busy_timeout")
			return nil
		}
		forEachReader(d, func() {
			if err := d.read(t.Context(), check); err != nil {
				t.Error(err)
			}
		})
		if err := errors.Join(d.writer.do(t.Context(), check), d.Close()); err != nil {
			t.Fatal(err)
		}
	}
	source, err := OpenSource(t.Context(), path, false)
	if err != nil {
		t.Fatal(err)
	}
	wantPragmas(t, "a source", source.conn, "busy_timeout")
	if err := source.Close(); err != nil {
		t.Fatal(err)
	}
	target, err := OpenTarget(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	wantPragmas(t, "a target", target.conn, "busy_timeout")
	wantPragmas(t, "the writer of a target", target.store.writer.conn, "busy_timeout")
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
