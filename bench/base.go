package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	sqlitedb "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// copyForBase creates a SQLite file for the build of another commit, with the rows of
// one of our stores. Its tables may differ from ours, so the build creates them.
func (b *bench) copyForBase(bin, from string) (copied string) {
	copied = filepath.Join(b.work, "base.db")
	b.output("", bin, "db", "migrate", "--database", "sqlite:"+copied)
	copyRows(copied, from)
	b.output("", "sync", "-f", copied)
	return copied
}

// copyForBase does the same on PostgreSQL, in the cluster of the store at url.
func (pg *postgres) copyForBase(bin, url string) (copied string) {
	pg.execute(url, "CREATE DATABASE base")
	copied = strings.Replace(url, "/postgres?", "/base?", 1)
	pg.output("", bin, "db", "migrate", "--database", copied)
	columns := func(url string) []string {
		return pg.query(url, `SELECT table_name || ' ' || column_name FROM information_schema.columns
			JOIN information_schema.tables USING (table_schema, table_name)
			WHERE table_schema = current_schema AND table_type = 'BASE TABLE' AND table_name NOT LIKE 'animalstore_version%' ORDER BY table_name, ordinal_position`)
	}
	ours, tables := columns(url), map[string][]string{}
	for _, both := range columns(copied) {
		if slices.Contains(ours, both) {
			table, column, _ := strings.Cut(both, " ")
			tables[table] = append(tables[table], column)
		}
	}
	var script strings.Builder
	script.WriteString("SET session_replication_role = replica;\n") // without triggers and foreign keys
	for table, columns := range tables {
		list := strings.Join(columns, ", ")
		fmt.Fprintf(&script, "DELETE FROM %s;\n\\copy %[1]s (%s) FROM PROGRAM '%s -q -d \"%s\" -c \"COPY (SELECT %[2]s FROM %[1]s ORDER BY 1) TO STDOUT\"'\n",
			table, list, filepath.Join(pg.bin, "psql"), url)
	}
	for _, identity := range pg.query(copied, `SELECT format('SELECT setval(pg_get_serial_sequence(%L, %L), greatest(max(%I), 1)) FROM %I', table_name, column_name, column_name, table_name)
		FROM information_schema.columns WHERE table_schema = current_schema AND is_identity = 'YES'`) {
		script.WriteString(identity + ";\n")
	}
	script.WriteString("VACUUM ANALYZE;\n")
	file := filepath.Join(pg.work, "base.sql")
	check(os.WriteFile(file, []byte(script.String()), 0o600))
	pg.output("", filepath.Join(pg.bin, "psql"), "-q", "-v", "ON_ERROR_STOP=1", "-d", copied, "-f", file)
	return copied
}

// query returns the lines of a query's only column.
func (pg *postgres) query(url, query string) []string {
	out := must(exec.CommandContext(pg.ctx, filepath.Join(pg.bin, "psql"), "-qAt", "-d", url, "-c", query).Output())
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// copyRows replaces the rows of the SQLite file to with those of from, for tables and
// columns that both have, and copies the next ids.
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
