package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"animalstore/internal/db/postgres/pgtest"
	ours "animalstore/internal/db/sqlite"

	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// TestPostgresScripts_Slow are scripts that need a PostgreSQL server.
func TestPostgresScripts_Slow(t *testing.T) {
	server := pgtest.Shared(t)
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "postgres"),
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("POSTGRES", server.NewDatabase(t, ""))
			env.Setenv("OTHER", server.NewDatabase(t, ""))
			return nil
		},
		Cmds: scriptCommands,
	})
}

// scriptServed holds the lock of a SQLite file like a server, until the script ends.
func scriptServed(ts *testscript.TestScript, _ bool, args []string) {
	store, err := ours.Open(context.Background(), ts.MkAbs(args[0]), ours.Options{Serve: true})
	ts.Check(err)
	ts.Defer(func() { ts.Check(store.Close()) })
}

// scriptDamage runs statements in a SQLite file.
func scriptDamage(ts *testscript.TestScript, _ bool, args []string) {
	conn, err := sqlite.OpenConn(ts.MkAbs(args[0]), sqlite.OpenReadWrite|sqlite.OpenCreate)
	ts.Check(err)
	defer conn.Close()
	ts.Check(sqlitex.ExecuteScript(conn, args[1], nil))
}

// scriptNewer turns a database into one of a later version.
func scriptNewer(ts *testscript.TestScript, _ bool, args []string) {
	if file, ok := strings.CutPrefix(args[0], "sqlite:"); ok {
		scriptDamage(ts, false, []string{file, "PRAGMA user_version = 99"})
		return
	}
	conn, err := pgx.Connect(context.Background(), args[0])
	ts.Check(err)
	defer conn.Close(context.Background())
	var table string
	ts.Check(conn.QueryRow(context.Background(), "SELECT tablename FROM pg_tables WHERE tablename LIKE 'animalstore_version%'").Scan(&table))
	_, err = conn.Exec(context.Background(), "INSERT INTO "+table+" (version_id, is_applied) VALUES (99, true)")
	ts.Check(err)
}

// scriptConnected keeps a connection to a database open until the script ends.
func scriptConnected(ts *testscript.TestScript, _ bool, args []string) {
	config, err := pgx.ParseConfig(args[0])
	ts.Check(err)
	config.RuntimeParams["application_name"] = "another program"
	conn, err := pgx.ConnectConfig(context.Background(), config)
	ts.Check(err)
	ts.Defer(func() { conn.Close(context.Background()) })
}
