//go:build linux

package e2e

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"animalstore/internal/testenv"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

var addedLine = regexp.MustCompile(`Added ([0-9,]+) pets, 36 categories and ([0-9,]+) orders in [0-9.]+ s, [0-9,]+ pets a second\.\n`)

// counts returns how many rows a table of a file has.
func counts(t testing.TB, database, table string) (n int64) {
	t.Helper()
	conn, err := sqlite.OpenConn(database, sqlite.OpenReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetBusyTimeout(10 * time.Second)
	err = sqlitex.ExecuteTransient(conn, "SELECT count(*) FROM "+table, &sqlitex.ExecOptions{
		ResultFunc: func(stmt *sqlite.Stmt) error { n = stmt.ColumnInt64(0); return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func ungrouped(t testing.TB, s string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(strings.ReplaceAll(s, ",", ""), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestSeedThenServe fills a store, serves it and reads it.
func TestSeedThenServe(t *testing.T) {
	t.Parallel()
	database := newDatabase(t)
	r := run(t, "seed", "--pets", "500", "--database", "sqlite:"+database)
	said := addedLine.FindStringSubmatch(r.stderr)
	if r.code != 0 || r.stdout != "" || said == nil {
		t.Fatalf("exit code %d, want 0 and a summary.\n%+v", r.code, r)
	}
	if pets, orders := counts(t, database, "pets"), counts(t, database, "orders"); pets != 500 || orders != ungrouped(t, said[2]) {
		t.Errorf("got %d pets and %d orders stored, but the output is %q", pets, orders, said[0])
	}
	s := start(t, onDatabase(database))
	c := newClient(t, s, s.ownerKey())
	if all := c.allPets(t, 0); len(all) != 500 {
		t.Errorf("the server lists %d pets, want 500", len(all))
	}
	a := c.do(t, "POST", "/v1/pets", `{"name":"Rex","categoryId":1}`)
	if wantStatus(t, a, 201, ""); a.header.Get("Location") != "/v1/pets/501" {
		t.Errorf("the next pet is at %s, want /v1/pets/501", a.header.Get("Location"))
	}

	// A running server wouldn't notice rows written by seed.
	r = run(t, "seed", "--pets", "5", "--database", "sqlite:"+database)
	if r.code != 1 || !strings.Contains(r.stderr, "another animalstore serves this file. Stop it first, or name another file with --database") {
		t.Errorf("while a server runs: exit code %d, want 1 and a reason.\n%s", r.code, r.stderr)
	}
	if n := counts(t, database, "pets"); n != 501 {
		t.Errorf("got %d pets after a refusal, want 501", n)
	}
}

// TestSeedOnTerminal watches the bar and then presses Ctrl-C.
func TestSeedOnTerminal(t *testing.T) {
	t.Parallel()
	database := newDatabase(t)
	screen, terminal := openTerminal(t)
	cmd := exec.Command(binary, "seed", "--pets", "100000000", "--database", "sqlite:"+database)
	cmd.Env = cleanEnv()
	cmd.Stdin, cmd.Stderr = terminal, terminal
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	terminal.Close()
	exited := make(chan struct{})
	go func() {
		cmd.Wait()
		close(exited)
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-exited
	})
	shown := &buffer{}
	go io.Copy(shown, screen) // ends with the last program on the terminal

	bar := regexp.MustCompile(`\[=* *\] [0-9,]+0,000 of 100,000,000 pets, [0-9,]+ a second`)
	testenv.Eventually(t, "the bar moves", func() bool { return bar.MatchString(shown.String()) })
	if _, err := screen.Write([]byte{3}); err != nil { // Ctrl-C
		t.Fatal(err)
	}
	select {
	case <-exited:
	case <-time.After(60 * time.Second):
		t.Fatalf("Ctrl-C does not end it: %q", shown)
	}
	// A terminal's lines are broken between words.
	stopped := regexp.MustCompile(`animalstore: stopped: added ([0-9,]+) of 100,000,000 pets, with 36 categories and ([0-9,]+) orders, all complete\. Add the rest with --pets ([0-9]+)$`)
	var said []string
	testenv.Eventually(t, "it says what is stored", func() bool {
		said = stopped.FindStringSubmatch(strings.Join(strings.Fields(shown.String()), " "))
		return said != nil
	})
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
	pets := counts(t, database, "pets")
	if orders := counts(t, database, "orders"); pets == 0 || pets != ungrouped(t, said[1]) || orders != ungrouped(t, said[2]) || 100_000_000-pets != ungrouped(t, said[3]) {
		t.Errorf("got %d pets and %d orders stored, but the output is %q", pets, orders, said[0])
	}
}

// openTerminal opens a pseudo-terminal of 80 columns and the screen side of it.
func openTerminal(t *testing.T) (screen, terminal *os.File) {
	t.Helper()
	ioctl := func(f *os.File, request uintptr, arg unsafe.Pointer) {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), request, uintptr(arg)); errno != 0 {
			t.Fatalf("ioctl %#x: %v", request, errno)
		}
	}
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		testenv.Missing(t, "there are no terminals here: %v", err)
	}
	t.Cleanup(func() { screen.Close() })
	unlocked, number, size := int32(0), uint32(0), [4]uint16{24, 80}
	ioctl(screen, syscall.TIOCSPTLCK, unsafe.Pointer(&unlocked))
	ioctl(screen, syscall.TIOCGPTN, unsafe.Pointer(&number))
	ioctl(screen, syscall.TIOCSWINSZ, unsafe.Pointer(&size))
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return screen, terminal
}

func TestSeedOnAFullDisk(t *testing.T) {
	t.Parallel()
	database := filepath.Join(tmpfs(t, 7<<20), "store.db")
	r := run(t, "seed", "--pets", "1000000", "--database", "sqlite:"+database)
	said := regexp.MustCompile(`the disk is full: added ([0-9,]+) of 1,000,000 pets, with 36 categories and [0-9,]+ orders, all complete\. Add the rest with --pets [0-9]+ when there is space\n$`).FindStringSubmatch(r.stderr)
	if r.code != 1 || said == nil {
		t.Fatalf("exit code %d, want 1 and what to do.\n%s", r.code, r.stderr)
	}
	// Recovery needs space for an index of the log, so it is done elsewhere.
	elsewhere := newDatabase(t)
	for _, suffix := range []string{"", "-wal"} {
		if err := copyFile(database+suffix, elsewhere+suffix); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	if n := counts(t, elsewhere, "pets"); n == 0 || n != ungrouped(t, said[1]) {
		t.Errorf("got %d pets stored, but the output is %q", n, said[0])
	}
}
