package sqlite

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
)

// TestWatchedSize: a file that became shorter was truncated. One that is shorter than its
// header says wasn't, if it never was longer: a checkpoint was interrupted, perhaps because
// the disk is full.
func TestWatchedSize(t *testing.T) {
	const page = 4096
	f, err := os.Create(filepath.Join(t.TempDir(), "store.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := &watch{db: &DB{path: f.Name(), lock: &serverLock{file: f}, writer: &writer{}}}
	for _, step := range []struct {
		what          string
		header, pages int64
		truncated     bool
	}{
		{"complete", 3, 3, false},
		{"a checkpoint has written the header", 10, 3, false},
		{"the disk is full", 10, 5, false},
		{"there is space again", 10, 10, false},
		{"vacuumed", 4, 4, false},
		{"the disk is full again", 9, 4, false},
		{"truncated", 9, 2, true},
		{"complete again", 9, 9, false},
		{"emptied", 9, 0, true},
		{"without a header", 0, 9, true},
	} {
		writeHeader(t, f, page, step.header)
		if err := f.Truncate(step.pages * page); err != nil {
			t.Fatal(err)
		}
		w.short = 0
		var got error
		for range truncatedAfter + 2 {
			if got = w.look(); got != nil {
				break
			}
		}
		if (got != nil) != step.truncated {
			t.Errorf("%s: got error %v, want one: %t", step.what, got, step.truncated)
		}
	}
}

// writeHeader writes what SQLite's file format has at the start of a file. With no pages
// it writes zeros.
func writeHeader(t *testing.T, f *os.File, pageSize uint16, pages int64) {
	t.Helper()
	header := make([]byte, 100)
	if pages > 0 {
		copy(header, "SQLite format 3\x00")
		binary.BigEndian.PutUint16(header[16:], pageSize)
		binary.BigEndian.PutUint32(header[28:], uint32(pages))
	}
	if _, err := f.WriteAt(header, 0); err != nil {
		t.Fatal(err)
	}
}
