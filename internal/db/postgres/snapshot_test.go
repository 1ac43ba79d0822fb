package postgres

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"animalstore/internal/db"
	"animalstore/internal/db/postgres/pgtest"
	"animalstore/internal/db/transfer"
)

// TestTablesAreAllThereIs_Slow: a table or column that isn't in db.Tables would be lost when a
// store is moved.
func TestTablesAreAllThereIs_Slow(t *testing.T) {
	url := pgtest.Shared(t).NewDatabase(t, "")
	mustOpen(t, url, Options{}).Close()
	s, err := OpenSource(t.Context(), url, false)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	got := lines(t, s, `SELECT c.table_name || '.' || c.column_name || ' ' || replace(c.data_type, 'smallint', 'bigint') || ' ' || coalesce(k.ordinal_position, 0)
			|| CASE WHEN c.is_identity = 'YES' THEN ' serial' ELSE '' END || CASE WHEN c.is_nullable = 'YES' THEN ' null' ELSE '' END
		FROM information_schema.columns c
		LEFT JOIN information_schema.key_column_usage k ON k.table_name = c.table_name AND k.column_name = c.column_name AND k.constraint_name LIKE '%_pkey'
		WHERE c.table_schema = 'public' AND c.table_name NOT IN ('`+versionTable+`', 'event_queue', 'keys_version') AND c.table_name NOT LIKE 'console%' AND c.table_name NOT LIKE 'failure%' AND c.column_name <> 'leased_until'`) // the queue is published before a move, and no lease is moved
	var want []string
	for _, table := range db.Tables {
		for _, c := range table.Columns {
			line := fmt.Sprintf("%s.%s %s %d", table.Name, c.Name, []string{db.Int: "bigint", db.Text: "text", db.Bytes: "bytea"}[c.Kind], slices.Index(table.Key, c.Name)+1)
			if table.Serial && c.Name == "id" {
				line += " serial"
			}
			want = append(want, line)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the database has\n%s\n\nwant, by db.Tables,\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestTargetIsOpenedOnce_Slow: a target can only be opened once at a time.
func TestTargetIsOpenedOnce_Slow(t *testing.T) {
	url := pgtest.Shared(t).NewDatabase(t, "")
	target, err := OpenTarget(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	defer func(usual time.Duration) { lockTimeout = usual }(lockTimeout)
	lockTimeout = time.Millisecond // all that it could wait for is the first
	if second, err := OpenTarget(t.Context(), url); err == nil {
		second.Close()
		t.Error("a second target was opened")
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
