//go:build unix

package postgres

import (
	"context"
	"regexp"
	"strings"
	"sync"
	"testing"

	"animalstore/docs"
	"animalstore/internal/db/postgres/pgtest"
	"animalstore/internal/testenv"

	"github.com/jackc/pgx/v5"
)

// TestPgBouncer_Slow: PgBouncer works as the guide configures it. Otherwise it is refused,
// with an error that says what to change.
func TestPgBouncer_Slow(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	direct := server.NewDatabase(t, "")
	// Without this, PostgreSQL has the value that we need anyway.
	server.Set(t, "default_transaction_isolation", "serializable")
	ini, sql := guideBlock(t, "ini"), guideBlock(t, "sql")
	// change starts a PgBouncer that the guide configures, apart from one word.
	change := func(word, by string) (url string) {
		if !strings.Contains(ini, word) {
			t.Fatalf("the guide's configuration has no %s", word)
		}
		return server.PgBouncer(t, strings.Replace(ini, word, by, 1))(direct)
	}
	asPrinted := change("", "")
	all := []string{
		"default_transaction_isolation", "client_min_messages", "enable_seqscan", "enable_bitmapscan", "jit",
		"lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout",
	}

	mustRefuse(t, change("ignore_startup_parameters", "; "), "ignore_startup_parameters")
	mustRefuse(t, asPrinted, all...)

	server.MustExec(t, "postgres", sql)
	for _, name := range all {
		server.MustExec(t, "postgres", "ALTER ROLE animalstore RESET "+name)
		reconnect(t, asPrinted)
		mustRefuse(t, asPrinted, "("+name+")")
		server.MustExec(t, "postgres", sql)
	}
	reconnect(t, asPrinted)
	mustUse(t, asPrinted)
	whileBusy(t, asPrinted, func() { mustUse(t, asPrinted) })
	mustUse(t, direct+"&lock_timeout=0ms") // the operator wants no limit

	for _, mode := range []string{"transaction", "statement"} {
		url := change("= session", "= "+mode)
		mustRefuse(t, url, "pool_mode")
		whileBusy(t, url, func() {
			for range 20 {
				mustRefuse(t, url, "pool_mode")
			}
		})
	}
}

// guideBlock returns the code block of a language in what the guide says about PgBouncer.
func guideBlock(t *testing.T, lang string) string {
	t.Helper()
	guide, err := docs.Files.ReadFile("scaling.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)\n### PgBouncer\n.*?\n```" + lang + "[^\n]*\n(.*?)```\n").FindSubmatch(guide)
	if block == nil {
		t.Fatalf("the guide has no block of %s", lang)
	}
	return string(block[1])
}

// mustUse opens a store, changes it and reads it.
func mustUse(t *testing.T, url string) {
	t.Helper()
	d := mustOpen(t, url, Options{Timeout: testenv.Deadline})
	had := names(t, d)["Rex"]
	mustCreate(t, d, "Rex")
	if got := names(t, d)["Rex"]; got != had+1 {
		t.Errorf("got %d pets, want %d", got, had+1)
	}
}

// mustRefuse fails unless Open returns one line with all of these words, without the
// password.
func mustRefuse(t *testing.T, url string, words ...string) {
	t.Helper()
	d, err := Open(t.Context(), strings.Replace(url, "animalstore@", "animalstore:hunter2@", 1), Options{})
	if err == nil {
		d.Close()
		t.Errorf("Open succeeded, want an error with %q", words)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("got %q, want %q in it", err, word)
		}
	}
	if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %q, want one line without the password", err)
	}
}

// reconnect makes PgBouncer replace its connections, as the guide says.
func reconnect(t *testing.T, url string) {
	t.Helper()
	config, err := pgx.ParseConfig(strings.Replace(url, "/"+pgtest.Name(url), "/pgbouncer", 1))
	if err != nil {
		t.Fatal(err)
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol // all that the console understands
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), "RECONNECT"); err != nil {
		t.Fatal(err)
	}
}

// whileBusy calls f while other clients run queries, so that a pooler hands out its
// connections in a changing order.
func whileBusy(t *testing.T, url string, f func()) {
	t.Helper()
	var clients sync.WaitGroup
	defer clients.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 12 {
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			t.Fatal(err)
		}
		clients.Go(func() {
			defer conn.Close(context.Background())
			for ctx.Err() == nil {
				conn.Exec(ctx, "SELECT pg_sleep(random() / 200)")
			}
		})
	}
	f()
}
