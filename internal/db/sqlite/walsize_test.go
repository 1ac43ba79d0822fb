package sqlite

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// TestWALShrinks: the WAL grows while another program reads, and its file doesn't keep
// that size afterwards.
func TestWALShrinks(t *testing.T) {
	t.Parallel()
	const limit = checkpointPagesForce * 4096
	path := filepath.Join(t.TempDir(), "store.db")
	d := mustOpen(t, path, Options{Serve: true})
	reader, err := sqlite.OpenConn(path, sqlite.OpenReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	for _, query := range []string{"BEGIN", "SELECT count(*) FROM pets"} {
		if err := sqlitex.ExecuteTransient(reader, query, nil); err != nil {
			t.Fatal(err)
		}
	}
	write := func(statement string) {
		t.Helper()
		err := d.writer.do(t.Context(), func(c *sqlite.Conn) error { return sqlitex.ExecuteTransient(c, statement, nil) })
		if err != nil {
			t.Fatal(err)
		}
	}
	write("CREATE TABLE ballast (content BLOB)")
	for range 18 {
		write("INSERT INTO ballast VALUES (zeroblob(4000000))")
	}
	size := func() int64 {
		info, err := os.Stat(path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	grown := size()
	if grown <= limit {
		t.Fatalf("the WAL has %d bytes, want more than the %d that it may keep", grown, limit)
	}
	const little = "INSERT INTO ballast VALUES (NULL)"
	for range 2 * checkEvery {
		write(little)
	}
	if now := size(); now < grown {
		t.Errorf("the WAL has %d bytes while a program reads, and had %d", now, grown)
	}
	if err := sqlitex.ExecuteTransient(reader, "COMMIT", nil); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); size() > limit; write(little) {
		if time.Now().After(deadline) {
			t.Fatalf("the WAL has %d bytes a minute after the last reader, want at most %d", size(), limit)
		}
	}
}
