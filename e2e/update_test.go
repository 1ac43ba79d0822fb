package e2e

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// withoutNames turns a store into one whose names are about to be folded.
const withoutNames = `
	DROP INDEX pets_by_name;
	UPDATE pets SET folded_name = '';
	CREATE TABLE names_update (id INTEGER PRIMARY KEY, folded INTEGER NOT NULL) STRICT;
	INSERT INTO names_update VALUES (1, 0);`

// TestKilledUpdate kills a server while it updates the tables of a large store. The next
// start finishes the update, and asks systemd for the time it takes.
func TestKilledUpdate(t *testing.T) {
	t.Parallel()
	database := newDatabase(t)
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(binary, append(args, "--database", "sqlite:"+database)...)
		cmd.Env = cleanEnv()
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	run("seed", "--pets", "100000")
	conn, err := sqlite.OpenConn(database, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	if err := sqlitex.ExecuteScript(conn, withoutNames, nil); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}

	dir, err := os.MkdirTemp("", "notify") // the name of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "socket")
	systemd, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer systemd.Close()
	systemd.SetReadDeadline(time.Now().Add(time.Minute))
	receive := func() string {
		t.Helper()
		message := make([]byte, 300)
		n, err := systemd.Read(message)
		if err != nil {
			t.Fatal(err)
		}
		return string(message[:n])
	}

	s := launch(t, onDatabase(database), withEnv("NOTIFY_SOCKET="+path))
	if got := receive(); !strings.HasPrefix(got, "EXTEND_TIMEOUT_USEC=60000000\nSTATUS=Updating the tables: ") {
		t.Errorf("systemd was told %q, want that the start takes longer", got)
	}
	s.kill()
	if s.url != "" || !strings.Contains(s.stderr.String(), "updating the tables of the database") {
		t.Errorf("the log doesn't say that the tables are updated.\n%s", s.output())
	}

	s = start(t, onDatabase(database), withEnv("NOTIFY_SOCKET="+path))
	for message := receive(); message != "READY=1"; message = receive() {
		if !strings.HasPrefix(message, "EXTEND_TIMEOUT_USEC=60000000\n") && message != "STATUS=" {
			t.Errorf("systemd was told %q, want more time or that the server is ready", message)
		}
	}
	c := newClient(t, s, s.ownerKey())
	if got := c.get(t, "/v1/pets?name=ZO%C3%8B&limit=1"); got.status != 200 || !strings.Contains(string(got.body), `"name":"Zoë`) {
		t.Errorf("got %d %s, want a pet called Zoë", got.status, got.body)
	}
	s.stop()
	if out := run("db", "check"); !strings.Contains(out, "checks passed") {
		t.Errorf("the store isn't consistent:\n%s", out)
	}
}
