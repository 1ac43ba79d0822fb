//go:build linux

package sqlite

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
)

// TestLostFilesAreTheReason: if a read or write finds damage because the files were
// removed, replaced or truncated, the server reports that as the reason.
func TestLostFilesAreTheReason(t *testing.T) {
	losses := map[string]struct {
		lose func(path string) error
		said string
	}{
		"nothing":     {func(string) error { return nil }, "database "},
		"truncated":   {func(path string) error { return os.Truncate(path, 3*4096) }, "store.db was truncated or overwritten"},
		"emptied":     {func(path string) error { return os.Truncate(path, 0) }, "store.db was truncated or overwritten"},
		"removed":     {os.Remove, "store.db was removed"},
		"replaced":    {func(path string) error { return os.Rename(path+".other", path) }, "store.db was replaced"},
		"WAL removed": {func(path string) error { return os.Remove(path + "-wal") }, "store.db-wal was removed"},
	}
	damaged := func(*sqlite.Conn) error { return errDamagedRow }
	for what, use := range map[string]func(*DB) error{
		"read":  func(d *DB) error { return d.read(t.Context(), damaged) },
		"write": func(d *DB) error { return d.writer.do(t.Context(), damaged) },
	} {
		for loss, c := range losses {
			t.Run(what+", "+loss, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "store.db")
				if err := os.WriteFile(path+".other", nil, 0o600); err != nil {
					t.Fatal(err)
				}
				reasons := make(chan error, 1)
				d, err := Open(t.Context(), path, Options{Serve: true, Fatal: func(err error) { reasons <- err }})
				if err != nil {
					t.Fatal(err)
				}
				defer d.Close() // which fails without its files
				if err := c.lose(path); err != nil {
					t.Fatal(err)
				}
				if err := use(d); err == nil {
					t.Error("got no error")
				}
				reason := <-reasons
				if got, _ := strings.CutPrefix(reason.Error(), filepath.Dir(path)+"/"); !strings.HasPrefix(got, c.said) {
					t.Errorf("Fatal got %v, want %s", reason, c.said)
				}
			})
		}
	}
}
