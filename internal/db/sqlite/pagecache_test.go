package sqlite

import (
	"math/rand/v2"
	"path/filepath"
	"testing"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// TestConnectionsSharePages: readers of a store that is larger than the page cache fill
// it and take no memory beside it, although they could keep more pages than it has.
func TestConnectionsSharePages(t *testing.T) {
	d := mustOpen(t, filepath.Join(t.TempDir(), "store.db"), Options{Serve: true})
	slots := int64(sharePages())
	if slots == 0 {
		t.Fatal("connections share no pages")
	}
	pets := slots * 80 // of 200 bytes each: four times as many pages
	err := d.writer.do(t.Context(), func(c *sqlite.Conn) error {
		return sqlitex.Execute(c, `
			WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < ?)
			INSERT INTO pets (name, category_id, status) SELECT hex(zeroblob(100)), 1, 0 FROM n`,
			&sqlitex.ExecOptions{Args: []any{pets}})
	})
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 5 * slots {
		for _, r := range d.readers.stack {
			if _, err := selectPet(r.conn, 1+random.Int64N(pets)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if used := sqliteStatus(t, lib.SQLITE_STATUS_PAGECACHE_USED); used < slots*9/10 {
		t.Errorf("%d of %d pages of the cache are used", used, slots)
	}
	if more := sqliteStatus(t, lib.SQLITE_STATUS_PAGECACHE_OVERFLOW); more > 20*cachedPageSize {
		t.Errorf("%d bytes are used besides the page cache", more)
	}
}

// counterNow and counterMost aren't on the stack, which may move during the call.
var counterNow, counterMost int64

// sqliteStatus asks SQLite for one of its counters.
func sqliteStatus(t *testing.T, counter int32) int64 {
	t.Helper()
	tls := libc.NewTLS()
	defer tls.Close()
	code := lib.Xsqlite3_status64(tls, counter, uintptr(unsafe.Pointer(&counterNow)), uintptr(unsafe.Pointer(&counterMost)), 0)
	if err := sqlite.ResultCode(code).ToError(); err != nil {
		t.Fatalf("sqlite3_status64(%d): %v", counter, err)
	}
	return counterNow
}
