package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"animalstore/internal/db/sqlite"

	sqlitedb "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// startBase starts a build of the revision to compare with, on the same rows as
// ours. A build with fewer tables than this one refuses a store of ours, so it
// creates its own, which gets the rows.
func (b *bench) startBase() *server {
	bin := b.buildRevision("base", b.base)
	s, database := b.seededCopy("base", 1)
	own := filepath.Join(b.work, "base-own.db")
	b.output("", bin, "db", "migrate", "--database", "sqlite:"+own)
	if have, known, err := sqlite.Versions(own); err != nil || have != known {
		check(err)
		copyRows(own, strings.TrimPrefix(database, "sqlite:"))
		b.output("", "sync", "-f", own)
		database = "sqlite:" + own
	}
	return b.startBuild(s, bin, database)
}

// copyRows replaces the rows of the SQLite file to with those of from: tables and
// columns that both have, and the ids that are next.
func copyRows(to, from string) {
	conn := must(sqlitedb.OpenConn(to, sqlitedb.OpenReadWrite))
	defer func() { check(conn.Close()) }()
	check(sqlitex.Execute(conn, "ATTACH ? AS source", &sqlitex.ExecOptions{Args: []any{from}}))
	var script strings.Builder
	for _, table := range queryNames(conn, "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'") {
		fmt.Fprintf(&script, "DELETE FROM main.%s;\n", table)
		columns := strings.Join(queryNames(conn, `SELECT name FROM pragma_table_info(?1, 'main')
			WHERE name IN (SELECT name FROM pragma_table_info(?1, 'source')) ORDER BY pk = 0, pk`, table), ", ")
		if columns != "" { // in the order of ids, as rows are added
			fmt.Fprintf(&script, "INSERT INTO main.%s (%s) SELECT %[2]s FROM source.%[1]s ORDER BY 1;\n", table, columns)
		}
	}
	script.WriteString(`DELETE FROM main.sqlite_sequence;
		INSERT INTO main.sqlite_sequence SELECT * FROM source.sqlite_sequence
			WHERE name IN (SELECT name FROM main.sqlite_schema);`)
	check(sqlitex.ExecuteScript(conn, script.String(), nil))
}

// queryNames returns the only column of a query.
func queryNames(conn *sqlitedb.Conn, query string, args ...any) (names []string) {
	check(sqlitex.Execute(conn, query, &sqlitex.ExecOptions{Args: args, ResultFunc: func(row *sqlitedb.Stmt) error {
		names = append(names, row.ColumnText(0))
		return nil
	}}))
	return names
}
