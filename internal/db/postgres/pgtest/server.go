//go:build unix

package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"animalstore/internal/testenv"
)

// Server is a PostgreSQL server.
type Server struct {
	base     *url.URL // of its databases
	binaries string
	dir      string
	port     int
	uid, gid int // the user it runs as; 0: ours
	process  *process
}

// process is a running postmaster or pooler.
type process struct {
	pid    int
	exited chan struct{}
}

// start creates a server in a new directory and waits until it responds.
func start(t testing.TB) *Server {
	t.Helper()
	s := prepare(t, Binaries(t))
	s.createData(t)
	s.configure(t, settings...)
	s.launch(t)
	return s
}

// prepare creates a directory and finds a port.
func prepare(t testing.TB, binaries string) *Server {
	t.Helper()
	dir, err := os.MkdirTemp("", "pgtest-")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{binaries: binaries, dir: dir, port: freePort(t)}
	if os.Getuid() == 0 { // PostgreSQL refuses to run as root
		nobody, err := user.Lookup("nobody")
		if err != nil {
			t.Fatal(err)
		}
		s.uid, _ = strconv.Atoi(nobody.Uid)
		s.gid, _ = strconv.Atoi(nobody.Gid)
		if err := os.Chown(dir, s.uid, s.gid); err != nil {
			t.Fatal(err)
		}
	}
	s.base = &url.URL{Scheme: "postgres", User: url.User("animalstore"), Host: fmt.Sprint("127.0.0.1:", s.port), RawQuery: "sslmode=disable"}
	return s
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// configure adds lines to the server's settings.
func (s *Server) configure(t testing.TB, lines ...string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(s.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	own := []string{
		fmt.Sprint("port=", s.port), "listen_addresses='127.0.0.1'", fmt.Sprintf("unix_socket_directories='%s'", s.dir),
	}
	_, err = f.WriteString("\n" + strings.Join(append(own, lines...), "\n") + "\n")
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// run runs a program as the user of the server and waits for it.
func (s *Server) run(t testing.TB, program string, args ...string) {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.SysProcAttr = s.attributes(syscall.SIGKILL)
	cmd.Dir = s.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", program, err, out)
	}
}

// launch starts the postmaster and waits until it responds.
func (s *Server) launch(t testing.TB) {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	s.process = s.spawn(t, log, syscall.SIGQUIT, // an immediate shutdown
		filepath.Join(s.binaries, "postgres"), "-D", s.data())
	s.await(t, "the server responds", "SELECT true")
}

// spawn starts a program as the user of the server. The program gets a signal when this
// process ends.
func (s *Server) spawn(t testing.TB, log *os.File, signal syscall.Signal, program string, args ...string) *process {
	t.Helper()
	p := &process{exited: make(chan struct{})}
	started := make(chan error)
	go func() {
		// Linux sends the parent-death signal when the thread that started the process
		// ends.
		runtime.LockOSThread()
		cmd := exec.Command(program, args...)
		cmd.SysProcAttr = s.attributes(signal)
		cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, log, log
		err := cmd.Start()
		if err == nil {
			p.pid = cmd.Process.Pid
		}
		started <- err
		if err == nil {
			cmd.Wait()
			close(p.exited)
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	return p
}

// await waits until a query returns true.
func (s *Server) await(t testing.TB, what, question string) {
	t.Helper()
	testenv.Eventually(t, what, func() bool {
		select {
		case <-s.process.exited:
			t.Fatalf("the server has ended:\n%s", s.log())
		default:
		}
		ctx, cancel := context.WithTimeout(context.Background(), testenv.Deadline)
		defer cancel()
		conn, err := pgx.Connect(ctx, s.URL("postgres"))
		if err != nil {
			return false
		}
		defer conn.Close(ctx)
		var yes bool
		return conn.QueryRow(ctx, question).Scan(&yes) == nil && yes
	})
}

// log returns the server's log.
func (s *Server) log() string {
	text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
	return string(bytes.TrimSpace(text))
}

// Kill ends the server and everything it has started, as a power cut would.
func (s *Server) Kill() {
	all := s.Freeze() // so that it starts no more processes
	for _, pid := range all {
		syscall.Kill(pid, syscall.SIGKILL)
	}
	<-s.process.exited
	// Wait until their sockets are closed too, but not for a process that stays in the
	// list because nobody reaps it.
	deadline := time.Now().Add(testenv.Deadline)
	for _, pid := range all[1:] {
		for running(pid) && time.Now().Before(deadline) {
			time.Sleep(time.Millisecond)
		}
	}
}

// Stop shuts the server down cleanly, without waiting for its clients.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	syscall.Kill(s.process.pid, syscall.SIGINT)
	select {
	case <-s.process.exited:
	case <-time.After(testenv.Deadline):
		t.Fatalf("the server does not stop:\n%s", s.log())
	}
}

// Restart starts a stopped server again, on the same port.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.launch(t)
}

// Freeze suspends the server without closing a connection. It returns the processes
// that it stopped, the postmaster first.
func (s *Server) Freeze() []int {
	syscall.Kill(s.process.pid, syscall.SIGSTOP)
	all := append([]int{s.process.pid}, children(s.process.pid)...)
	for _, pid := range all[1:] {
		syscall.Kill(pid, syscall.SIGSTOP)
	}
	return all
}

// Thaw resumes a frozen server.
func (s *Server) Thaw() {
	for _, pid := range append(children(s.process.pid), s.process.pid) {
		syscall.Kill(pid, syscall.SIGCONT)
	}
}

// Standby starts a copy of the server that follows it, and makes the server wait for
// the copy in every commit.
func (s *Server) Standby(t testing.TB) *Server {
	t.Helper()
	standby := prepare(t, s.binaries)
	t.Cleanup(standby.remove)
	standby.Follow(t, s)
	return standby
}

// Follow deletes the data of a stopped server and makes it a standby of another, which
// then waits for it in every commit.
func (s *Server) Follow(t testing.TB, primary *Server) {
	t.Helper()
	if err := os.RemoveAll(s.data()); err != nil {
		t.Fatal(err)
	}
	s.run(t, filepath.Join(s.binaries, "pg_basebackup"), "-D", s.data(), "-R", "-X", "stream", "--checkpoint=fast", "--no-sync",
		"-d", fmt.Sprintf("host=127.0.0.1 port=%d user=animalstore application_name=standby_%d", primary.port, s.port))
	// Once promoted, it has no standby to wait for.
	s.configure(t, "synchronous_standby_names=''")
	s.launch(t)
	primary.Set(t, "synchronous_standby_names", "*")
	primary.await(t, "the standby follows", "SELECT EXISTS (SELECT FROM pg_stat_replication WHERE sync_state = 'sync')")
}

// Set changes a setting of a running server and returns when it is in effect.
func (s *Server) Set(t testing.TB, name, value string) {
	t.Helper()
	s.configure(t, fmt.Sprintf("%s='%s'", name, value))
	s.MustExec(t, "postgres", "SELECT pg_reload_conf()")
	// The postmaster notifies its children before it starts another, and the
	// checkpointer, which handles standbys, applies it before its next work.
	s.await(t, "the setting is in effect", fmt.Sprintf("SELECT current_setting('%s') = '%s'", name, value))
	s.MustExec(t, "postgres", "CHECKPOINT")
}

// Promote turns a standby into a primary, and returns when it is one.
func (s *Server) Promote(t testing.TB) {
	t.Helper()
	s.MustExec(t, "postgres", "SELECT pg_promote(true, 60)")
	s.await(t, "the standby is a primary", "SELECT NOT pg_is_in_recovery()")
}

// remove stops the server and deletes its files.
func (s *Server) remove() {
	if s.process != nil {
		select {
		case <-s.process.exited:
		default: // it frees its shared memory, unlike one that is killed
			s.Thaw()
			syscall.Kill(s.process.pid, syscall.SIGQUIT)
			<-s.process.exited
		}
	}
	os.RemoveAll(s.dir)
}
