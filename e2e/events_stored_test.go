package e2e

import (
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// withoutEvents selects what was stored without its event, and events of what wasn't
// stored, in a file where pets were only added.
const withoutEvents = `
	SELECT 'pet ' || p.id || ' has no event' FROM pets p LEFT JOIN events e ON e.type = 0 AND e.subject_id = p.id
		WHERE e.id IS NULL OR json_extract(e.data, '$.name') <> p.name UNION ALL
	SELECT 'event ' || e.id || ' is of a pet that was not stored' FROM events e LEFT JOIN pets p ON p.id = e.subject_id
		WHERE e.type = 0 AND p.id IS NULL UNION ALL
	SELECT 'category ' || c.id || ' has no event' FROM categories c LEFT JOIN events e ON e.type = 5 AND e.subject_id = c.id
		WHERE e.id IS NULL UNION ALL
	SELECT 'events ' || min(id) || ' to ' || max(id) || ' are ' || count(*) FROM events HAVING min(id) <> 1 OR max(id) <> count(*)`

// eventsMatch returns "ok" if every change in the file of a server that isn't running has
// its event, and every event its change.
func eventsMatch(t testing.TB, database string) string {
	t.Helper()
	got := "ok"
	onCopy(t, database, func(conn *sqlite.Conn) error {
		return sqlitex.ExecuteTransient(conn, withoutEvents, &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
			got = stmt.ColumnText(0)
			return nil
		}})
	})
	return got
}
