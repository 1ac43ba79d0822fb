//go:build linux

package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// note is a write of a few pages. They end with bytes that aren't zero, which a truncated
// WAL can't make up for.
func note(c *sqlite.Conn) error {
	return sqlitex.ExecuteTransient(c, "INSERT INTO notes VALUES (randomblob(20000))", nil)
}

// openNotes opens a server's store with a WAL, and returns what it stops for.
func openNotes(t *testing.T) (*DB, chan error) {
	t.Helper()
	reasons := make(chan error, 1)
	d, err := Open(t.Context(), filepath.Join(t.TempDir(), "store.db"), Options{Serve: true, Fatal: func(err error) { reasons <- err }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() }) // which fails without its files
	write := func(f func(*sqlite.Conn) error) {
		t.Helper()
		if err := d.writer.do(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	write(func(c *sqlite.Conn) error {
		return sqlitex.ExecuteTransient(c, "CREATE TABLE notes (content BLOB)", nil)
	})
	for range 5 {
		write(note)
	}
	return d, reasons
}

// appendPage writes as another process does, without reading anything but the first page.
func appendPage(t *testing.T, path string) {
	t.Helper()
	other, err := openConn(path, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := sqlitex.ExecuteTransient(other, "PRAGMA user_version = 99", nil); err != nil {
		t.Fatal(err)
	}
}

func sizeOfWAL(t *testing.T, d *DB) int64 {
	t.Helper()
	info, err := os.Stat(d.path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// TestTruncatedWAL: no write is acknowledged after somebody truncated, removed or replaced
// the WAL, or while somebody does.
func TestTruncatedWAL(t *testing.T) {
	t.Parallel()
	truncate := func(to func(size int64) int64) func(*testing.T, *DB) {
		return func(t *testing.T, d *DB) {
			if err := os.Truncate(d.path+"-wal", to(sizeOfWAL(t, d))); err != nil {
				t.Fatal(err)
			}
		}
	}
	losses := map[string]struct {
		lose func(*testing.T, *DB)
		said string
	}{
		"emptied":             {truncate(func(int64) int64 { return 0 }), "truncated"},
		"only a header":       {truncate(func(int64) int64 { return walHeaderSize }), "truncated"},
		"in the middle":       {truncate(func(size int64) int64 { return size / 2 }), "truncated"},
		"without a frame":     {truncate(func(size int64) int64 { return size - 4096 - frameHeaderSize }), "truncated"},
		"in the last frame":   {truncate(func(size int64) int64 { return size - 4096 }), "truncated"},
		"without a last byte": {truncate(func(size int64) int64 { return size - 1 }), "truncated"},
		"appended to since": {func(t *testing.T, d *DB) {
			truncate(func(size int64) int64 { return size - 4096 })(t, d)
			appendPage(t, d.path)
		}, "truncated"},
		"removed": {func(t *testing.T, d *DB) {
			if err := os.Remove(d.path + "-wal"); err != nil {
				t.Fatal(err)
			}
		}, "removed"},
		"replaced": {func(t *testing.T, d *DB) {
			content, err := os.ReadFile(d.path + "-wal")
			if err == nil {
				err = os.WriteFile(d.path+"-copy", content, 0o600)
			}
			if err == nil {
				err = os.Rename(d.path+"-copy", d.path+"-wal")
			}
			if err != nil {
				t.Fatal(err)
			}
		}, "replaced"},
	}
	for what, c := range losses {
		for when, write := range map[string]func(t *testing.T, d *DB) error{
			"before": func(t *testing.T, d *DB) error {
				c.lose(t, d)
				return d.writer.do(t.Context(), note)
			},
			"during": func(t *testing.T, d *DB) error {
				return d.writer.do(t.Context(), func(conn *sqlite.Conn) error {
					c.lose(t, d)
					return note(conn)
				})
			},
			"closing": func(t *testing.T, d *DB) error {
				c.lose(t, d)
				return d.Close()
			},
		} {
			switch {
			case what == "appended to since" && when == "during":
				continue // the write has the lock
			case c.said != "truncated" && when == "closing":
				continue // nothing is lost: the WAL is moved into the database file
			}
			t.Run(what+", "+when, func(t *testing.T) {
				t.Parallel()
				d, reasons := openNotes(t)
				if err := write(t, d); err == nil {
					t.Error("got no error")
				}
				select {
				case reason := <-reasons:
					if want := "store.db-wal was " + c.said; !strings.Contains(reason.Error(), want) {
						t.Errorf("got %v, want that %s", reason, want)
					}
				default:
					t.Error("the server doesn't stop")
				}
			})
		}
	}
}

// TestTruncatedWhileWriting truncates the WAL between two frames of one transaction, which
// fills the gap with zeros: the file is as long as it must be.
func TestTruncatedWhileWriting(t *testing.T) {
	t.Parallel()
	for what, cut := range map[string]int64{"in a page": 100, "in a header": 4096 + 10, "at a frame": 4096 + frameHeaderSize} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			d, reasons := openNotes(t)
			err := d.writer.do(t.Context(), func(c *sqlite.Conn) error {
				// More pages than the cache has, so that some go to the WAL at once.
				before := sizeOfWAL(t, d)
				for range 4000 {
					if err := note(c); err != nil {
						return err
					}
					if size := sizeOfWAL(t, d); size > before+1<<20 {
						if err := os.Truncate(d.path+"-wal", size-cut); err != nil {
							return err
						}
						return note(c)
					}
				}
				return errors.New("nothing was written to the WAL before the commit")
			})
			if !errors.Is(err, db.ErrOutcomeUnknown) {
				t.Errorf("got error %v, want one that the outcome is unknown", err)
			}
			select {
			case <-reasons:
			default:
				t.Error("the server doesn't stop")
			}
		})
	}
}

// TestTruncatedWALWithoutWrites: a server without anything to do notices as well.
func TestTruncatedWALWithoutWrites(t *testing.T) {
	t.Parallel()
	d, reasons := openNotes(t)
	if err := os.Truncate(d.path+"-wal", sizeOfWAL(t, d)-1); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	select {
	case reason := <-reasons:
		t.Logf("%v after %v", reason, time.Since(begun)) // at most a second on a machine with time to spare
	case <-time.After(time.Minute):
		t.Error("the server doesn't notice")
	}
}

// TestWALOfOthers: changes that other processes make through SQLite are accepted:
// appending to the WAL, restarting and truncating it, and rolling back.
func TestWALOfOthers(t *testing.T) {
	t.Parallel()
	d, reasons := openNotes(t)
	begun := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	background := make(chan error)
	repeat := func(f func() error) {
		go func() {
			var err error
			for ctx.Err() == nil && err == nil {
				err = f()
			}
			background <- err
		}()
	}
	repeat(d.watch.checkWAL)
	repeat(func() error { return d.writer.do(t.Context(), note) })
	other, err := openConn(d.path, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	truncated := 0
	repeat(func() error {
		for _, statement := range []string{
			"INSERT INTO notes VALUES (zeroblob(20000))",
			"PRAGMA wal_checkpoint(PASSIVE)", "PRAGMA wal_checkpoint(RESTART)",
			// Pages that don't fit in the cache go to the WAL before the commit.
			"PRAGMA cache_size = 10",
			"BEGIN IMMEDIATE", "INSERT INTO notes VALUES (randomblob(500000))", "UPDATE notes SET content = zeroblob(10)", "ROLLBACK",
			"BEGIN IMMEDIATE", "INSERT INTO notes VALUES (randomblob(500000))", "UPDATE notes SET content = zeroblob(10)", "DELETE FROM notes", "COMMIT",
		} {
			if err := sqlitex.ExecuteTransient(other, statement, nil); err != nil && sqlite.ErrCode(err).ToPrimary() != sqlite.ResultBusy {
				return err
			}
		}
		return sqlitex.ExecuteTransient(other, "PRAGMA wal_checkpoint(TRUNCATE)", &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
			if stmt.ColumnInt(0) == 0 {
				truncated++
			}
			// On a busy machine the first one may take longer than a second.
			if truncated > 0 && time.Since(begun) > time.Second {
				cancel()
			}
			return nil
		}})
	})
	for range 3 {
		if err := <-background; err != nil {
			t.Error(err)
		}
	}
	select {
	case reason := <-reasons:
		t.Error(reason)
	default:
	}
	t.Logf("the WAL was truncated %d times", truncated)
	if truncated == 0 {
		t.Error("the WAL was never truncated: the test checks nothing")
	}
}
