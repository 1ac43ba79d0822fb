//go:build unix

package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"animalstore/internal/db"
	"animalstore/internal/db/postgres/pgtest"
	"animalstore/internal/testenv"
)

// TestOpenAtOnce_Slow: several programs can start at once on an empty database.
func TestOpenAtOnce_Slow(t *testing.T) {
	t.Parallel()
	url := pgtest.Shared(t).NewDatabase(t, "")
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			d, err := Open(context.Background(), url, Options{Timeout: testenv.Deadline})
			if err != nil {
				t.Errorf("Open: %v", err)
				return
			}
			defer d.Close()
			if err := create(t, d, "Rex", nil); err != nil {
				t.Errorf("CreatePet: %v", err)
			}
		})
	}
	wg.Wait()
	if got := names(t, mustOpen(t, url, Options{MustExist: true, Timeout: testenv.Deadline}))["Rex"]; got != 5 {
		t.Errorf("got %d pets, want 5", got)
	}
}

// TestOpenRefuses_Slow: an unsuitable database is refused, with a message without the password.
func TestOpenRefuses_Slow(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	database := func(statements ...string) string {
		url := server.NewDatabase(t, "")
		for _, s := range statements {
			server.MustExec(t, pgtest.Name(url), s)
		}
		return url
	}
	newer := database()
	mustOpen(t, newer, Options{Timeout: testenv.Deadline}).Close()
	server.MustExec(t, pgtest.Name(newer), "INSERT INTO "+versionTable+" (version_id, is_applied) VALUES (9999, true)")
	server.MustExec(t, "postgres", "DROP DATABASE IF EXISTS latin")
	server.MustExec(t, "postgres", "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
	t.Cleanup(func() { server.MustExec(t, "postgres", "DROP DATABASE latin") })
	sleepy := database()
	server.MustExec(t, "postgres", "ALTER DATABASE "+pgtest.Name(sleepy)+" SET synchronous_commit = off")
	for _, test := range []struct {
		name, url string
		opts      Options
	}{
		{"an empty database that must exist", database(), Options{MustExist: true}},
		{"a newer version's", newer, Options{}},
		{"another encoding", server.URL("latin"), Options{}},
		{"commits that are not on disk", sleepy, Options{}},
		{"an absent database", server.URL("absent"), Options{}},
		{"a development version's", database("CREATE TABLE animalstore_version_0 ()"), Options{}},
		{"another program's tables", database("CREATE TABLE pets (x int)"), Options{}},
		{"no URL", "postgres://me:hunter2@host:port/x", Options{}},
	} {
		d, err := Open(t.Context(), strings.Replace(test.url, "animalstore@", "animalstore:hunter2@", 1), test.opts)
		if err == nil {
			d.Close()
			t.Errorf("%s was opened, want an error", test.name)
		} else if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %q, want one line without the password", test.name, err)
		}
	}
}

// TestOpenUnreachable: a server that is down is reported, without the password.
func TestOpenUnreachable(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	_, err = Open(t.Context(), fmt.Sprintf("postgres://me:hunter2@%s/store?sslmode=disable", closed.Addr()), Options{})
	var refused *db.OpenError
	if !errors.As(err, &refused) || refused.Reason != db.Unreachable || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v, want that it is unreachable", err)
	}
}

func TestURLs(t *testing.T) {
	for url, want := range map[string]string{
		"postgres://me:hunter2@db1:5433/store":                                            "postgres://db1:5433/store",
		"postgresql://me:hunter2@db1:5432,db2:6000/store?target_session_attrs=read-write": "postgres://db1:5432,db2:6000/store",
		"postgres://db/store?user=me&password=hunter2&sslmode=require":                    "postgres://db:5432/store",
		"postgres://[::1]/store?sslmode=disable":                                          "postgres://[::1]:5432/store",
		"postgres://me:hunter2@db:port/store":                                             "postgres://…",
	} {
		if got := Redacted(url); got != want {
			t.Errorf("Redacted(%s) = %s, want %s", url, got, want)
		}
		if !Is(url) {
			t.Errorf("Is(%s) = false", url)
		}
	}
	for _, url := range []string{"", "sqlite:postgres://", "postgres:store", "mysql://db/store", "host=db"} {
		if Is(url) {
			t.Errorf("Is(%q) = true", url)
		}
	}
	for url, want := range map[string]int32{
		"postgres://db/store":                   defaultConns,
		"postgres://db/store?pool_max_conns=3":  3,
		"postgres://db/store?pool_max_conns=40": 40,
	} {
		config, err := parseConfig(url, defaultTimeout)
		if err != nil || config.MaxConns != want {
			t.Errorf("%s: got %d connections, %v, want %d", url, config.MaxConns, err, want)
		}
	}
	// The operator can change timeouts, but not the settings that the engine relies on.
	config, err := parseConfig("postgres://db/store?statement_timeout=7&default_transaction_isolation=serializable", defaultTimeout)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"statement_timeout": "7", "lock_timeout": "1920", "default_transaction_isolation": "read committed"} {
		if got := config.ConnConfig.RuntimeParams[name]; got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
}
