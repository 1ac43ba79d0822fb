package sqlite

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"animalstore"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// wantRefused checks that path cannot be opened, and why.
func wantRefused(t *testing.T, path string, opts Options, reason string) {
	t.Helper()
	d, err := Open(t.Context(), path, opts)
	if err == nil {
		d.Close()
		t.Fatalf("Open(%s) succeeded, want an error with %q", path, reason)
	}
	if !strings.Contains(err.Error(), reason) || !strings.Contains(err.Error(), filepath.Base(path)) {
		t.Errorf("Open(%s): %v, want the path and %q", path, err, reason)
	}
}

// script creates or changes a SQLite file.
func script(t *testing.T, path, sql string) {
	t.Helper()
	c, err := sqlite.OpenConn(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := sqlitex.ExecuteScript(c, sql, nil); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestOpenRefusesWhatIsNotSQLite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notes.txt")
	content := []byte(strings.Repeat("Dear diary, today I fed the bear.\n", 100))
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, path, Options{Serve: true}, "is not a SQLite database")
	if !bytes.Equal(readFile(t, path), content) {
		t.Error("the file was changed")
	}
}

func TestOpenLeavesOtherProgramsAlone(t *testing.T) {
	for name, sql := range map[string]string{
		"with another id":          "PRAGMA application_id = 42; CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)",
		"with an id and no tables": "PRAGMA application_id = 42",
		"with tables and no id":    "CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)",
		"in WAL mode":              "PRAGMA journal_mode = WAL; CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "theirs.db")
			script(t, path, sql)
			before := readFile(t, path)
			wantRefused(t, path, Options{Serve: true}, "belongs to another program")
			wantRefused(t, path, Options{MustExist: true}, "belongs to another program")
			if !bytes.Equal(readFile(t, path), before) {
				t.Error("the file was changed")
			}
		})
	}
}

// TestOpenLeavesOtherProgramsWALAlone: a program that was killed leaves its latest
// changes in a WAL next to the file, which only that program may move.
func TestOpenLeavesOtherProgramsWALAlone(t *testing.T) {
	dir := t.TempDir()
	running := filepath.Join(dir, "running.db")
	c, err := sqlite.OpenConn(running)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := sqlitex.ExecuteScript(c, "CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)", nil); err != nil {
		t.Fatal(err)
	}
	before := map[string][]byte{}
	killed := filepath.Join(dir, "killed.db")
	for _, suffix := range []string{"", "-wal"} {
		before[suffix] = readFile(t, running+suffix)
		if err := os.WriteFile(killed+suffix, before[suffix], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if len(before["-wal"]) == 0 {
		t.Fatal("the test's own WAL is empty")
	}
	wantRefused(t, killed, Options{Serve: true}, "belongs to another program")
	for suffix, content := range before {
		if got, err := os.ReadFile(killed + suffix); err != nil || !bytes.Equal(got, content) {
			t.Errorf("killed.db%s was changed (%v)", suffix, err)
		}
	}
}

// TestOpenAfterStartCutOff: the very first start uses a rollback journal. If it is
// killed, the next start has to roll back.
func TestOpenAfterStartCutOff(t *testing.T) {
	dir := t.TempDir()
	running, killed := filepath.Join(dir, "running.db"), filepath.Join(dir, "killed.db")
	c, err := sqlite.OpenConn(running, sqlite.OpenReadWrite|sqlite.OpenCreate)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, sql := range []string{
		fmt.Sprintf("PRAGMA application_id = %d", schema.AppID),
		"PRAGMA cache_size = 1", // so that it writes before the transaction ends
		"BEGIN",
		"CREATE TABLE half (x)",
		"INSERT INTO half WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 100) SELECT zeroblob(3000) FROM n",
	} {
		if err := sqlitex.ExecuteTransient(c, sql, nil); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	for _, suffix := range []string{"", "-journal"} {
		if err := os.WriteFile(killed+suffix, readFile(t, running+suffix), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mustOpen(t, killed, Options{Serve: true})
}

func TestOpenRefusesNewerFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	mustOpen(t, path, Options{}).Close()
	script(t, path, fmt.Sprintf("PRAGMA user_version = %d", len(schema.Migrations)+1))
	before := readFile(t, path)
	wantRefused(t, path, Options{Serve: true}, "newer animalstore")
	if !bytes.Equal(readFile(t, path), before) {
		t.Error("the file was changed")
	}
}

func TestOpenRefusesWhatCannotBeAFile(t *testing.T) {
	dir := t.TempDir()
	wantRefused(t, dir, Options{}, "is a directory")
	missing := filepath.Join(dir, "absent", "store.db")
	if _, err := Open(t.Context(), missing, Options{}); err == nil || !strings.Contains(err.Error(), "the directory "+filepath.Dir(missing)+" does not exist") {
		t.Errorf("Open in a missing directory: %v", err)
	}
	absent := filepath.Join(dir, "absent.db")
	wantRefused(t, absent, Options{MustExist: true}, "does not exist")
	if _, err := os.Stat(absent); !os.IsNotExist(err) {
		t.Errorf("MustExist created the file: %v", err)
	}
}

func TestOpenRefusesSecondServer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	d := mustOpen(t, path, Options{Serve: true})
	wantRefused(t, path, Options{Serve: true}, "another animalstore serves this file")
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), link, Options{Serve: true}); err == nil || !strings.Contains(err.Error(), "another animalstore serves this file") {
		t.Errorf("a second server through a link: %v", err)
	}
	mustOpen(t, path, Options{MustExist: true}) // a command may open it alongside the server
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	mustOpen(t, path, Options{Serve: true}).Close() // closing releases the lock
}

// heldPath is an environment variable: TestOpenRefusesServerInOtherProcess, run again
// in a child process, serves the file that it names until its standard input ends.
const heldPath = "ANIMALSTORE_TEST_HOLD"

func TestOpenRefusesServerInOtherProcess(t *testing.T) {
	if path := os.Getenv(heldPath); path != "" {
		mustOpen(t, path, Options{Serve: true})
		fmt.Println("holding")
		bufio.NewReader(os.Stdin).ReadByte()
		return
	}
	path := filepath.Join(t.TempDir(), "store.db")
	holder := exec.Command(os.Args[0], "-test.run=^TestOpenRefusesServerInOtherProcess$")
	holder.Env = append(os.Environ(), heldPath+"="+path)
	stdin, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		holder.Wait()
	})
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "holding\n" {
		t.Fatalf("the other process printed %q, %v", line, err)
	}
	wantRefused(t, path, Options{Serve: true}, "another animalstore serves this file")
	// A kill leaves the lock file behind, but not the lock.
	holder.Process.Kill()
	holder.Wait()
	mustOpen(t, path, Options{Serve: true})
}

func TestMemoryIsAFileName(t *testing.T) {
	t.Chdir(t.TempDir())
	d := mustOpen(t, ":memory:", Options{Serve: true})
	pet, _, err := d.CreatePet(t.Context(), animalstore.NewPet{Name: "Rex", CategoryID: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	d.Close()
	d = mustOpen(t, ":memory:", Options{Serve: true, MustExist: true})
	if got, err := d.Pet(t.Context(), pet.ID); err != nil || got != pet {
		t.Errorf("after reopening: %+v, %v, want %+v", got, err, pet)
	}
}

func TestFilesAreTheOwnersAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	d := mustOpen(t, path, Options{Serve: true})
	if _, _, err := d.CreatePet(t.Context(), animalstore.NewPet{Name: "Rex", CategoryID: 1}, nil); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"", "-wal", "-shm", ".lock"} {
		info, err := os.Stat(path + suffix)
		if err != nil {
			t.Error(err)
		} else if mode := info.Mode().Perm(); mode != 0o600 {
			t.Errorf("store.db%s has mode %o, want 600", suffix, mode)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"-wal", "-shm"} {
		if _, err := os.Stat(path + suffix); !os.IsNotExist(err) {
			t.Errorf("store.db%s is left after Close: %v", suffix, err)
		}
	}
}
