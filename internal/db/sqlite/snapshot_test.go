package sqlite

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"animalstore/internal/db"
	"animalstore/internal/db/transfer"
)

// TestTablesAreAllThereIs: a table or column that isn't in db.Tables would be lost when a
// store is moved.
func TestTablesAreAllThereIs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	mustOpen(t, path, Options{}).Close()
	s, err := OpenSource(t.Context(), path, false)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	got := lines(t, s, `SELECT t.name || '.' || c.name || ' ' || c.type || ' ' || c.pk || CASE WHEN t.sql LIKE '%AUTOINCREMENT%' THEN ' serial' ELSE '' END
		FROM sqlite_schema t JOIN pragma_table_xinfo(t.name) c WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite\_%' ESCAPE '\' AND t.name NOT LIKE 'console%' AND t.name NOT LIKE 'failure%' AND t.name NOT IN ('keys_version', 'store_id')`)
	var want []string
	for _, table := range db.Tables {
		for _, c := range table.Columns {
			line := fmt.Sprintf("%s.%s %s %d", table.Name, c.Name, []string{db.Int: "INTEGER", db.Text: "TEXT", db.Bytes: "BLOB"}[c.Kind], slices.Index(table.Key, c.Name)+1)
			if table.Serial {
				line += " serial"
			}
			want = append(want, line)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the file has\n%s\n\nwant, by db.Tables,\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// lines returns the rows of a query that selects one text.
func lines(t *testing.T, s *Snapshot, query string) []string {
	t.Helper()
	_, all, err := transfer.Violations(t.Context(), s, db.Check{Query: query}, 1000)
	if err != nil {
		t.Fatal(err)
	}
	return all
}
