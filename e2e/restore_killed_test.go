package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestRestoreKilledBeforeItsName kills "db restore" when it is about to give the store its
// name. Webhooks are paused by then, also those of an older version, and the next run
// replaces what is left.
func TestRestoreKilledBeforeItsName(t *testing.T) {
	t.Parallel()
	needsStrace(t)
	needs(t, "sqlite3")
	dir := t.TempDir()
	current, older := filepath.Join(dir, "current.db"), filepath.Join(dir, "older.db")
	if r := run(t, "seed", "--pets", "100", "--database", "sqlite:"+current); r.code != 0 {
		t.Fatalf("seed: %+v", r)
	}
	// The first version with webhooks was the third.
	for _, file := range []string{"schema.sql", "schema2_events.sql", "schema3_webhooks.sql"} {
		query(t, older, contents("../internal/db/sqlite/"+file))
	}
	query(t, older, "PRAGMA application_id = 0x414e5354; PRAGMA user_version = 3")
	for _, backup := range []string{current, older} {
		name := filepath.Base(backup)
		query(t, backup, `WITH ids(id) AS (VALUES (1), (2)) INSERT INTO webhooks
			SELECT id, 'https://example.com/', 'pet.*', '', 0, '', 'whsec_b25l', '', 0, 1000, 0, 0, 0, 0, 0 FROM ids`)
		store := filepath.Join(dir, "restored-"+name)
		restore := []string{"db", "restore", backup, "--database", "sqlite:" + store}
		argv := append([]string{"-f", "-o", os.DevNull, "-e", "trace=renameat2", "-e", "inject=renameat2:signal=KILL", binary}, restore...)
		if out, err := exec.Command("strace", argv...).CombinedOutput(); err == nil {
			t.Fatalf("%s: restore was not killed:\n%s", name, out)
		}
		if exists(store) {
			t.Fatalf("%s: the store has its name, so the kill came too late", name)
		}
		const states = "SELECT group_concat(state) FROM webhooks"
		if got := query(t, store+".partial", states); got != "1,1" {
			t.Errorf("%s: before the store has its name, its webhooks are in the states %s, want all paused", name, got)
		}
		// What a kill in the middle of pausing leaves.
		if err := os.WriteFile(store+".partial-wal", []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
		if r := run(t, restore...); r.code != 0 || !strings.Contains(r.stderr, "Paused 2 webhooks") {
			t.Errorf("%s: restore after a kill: %+v", name, r)
		}
		if got := query(t, store, states); got != "1,1" {
			t.Errorf("%s: the webhooks of the restored store are in the states %s, want all paused", name, got)
		}
		if left, _ := filepath.Glob(store + ".partial*"); len(left) > 0 {
			t.Errorf("%s: left over: %q", name, left)
		}
	}
}

// query runs SQL on a file that no server uses.
func query(t *testing.T, file, sql string) string {
	t.Helper()
	cmd := exec.Command("sqlite3", "-bail", file)
	cmd.Stdin = strings.NewReader(sql)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", sql, err, out)
	}
	return strings.TrimSpace(string(out))
}
