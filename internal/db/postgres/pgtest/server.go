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
)

// Server is a PostgreSQL server.
type Server struct {
	base *url.URL // of its databases

	// For a server that was started here.
	binaries string
	dir      string
	port     int
	uid, gid int // the user it runs as; 0: ours
	process  *process
}

// process is a running postmaster.
type process struct {
	pid    int
	exited chan struct{}
}

// start creates a server in a new directory and waits until it responds.
func start(binaries string) (_ *Server, err error) {
	s, err := prepare(binaries)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.remove()
		}
	}()
	if err := s.createData(); err != nil {
		return nil, err
	}
	if err := s.configure(settings...); err != nil {
		return nil, err
	}
	return s, s.launch()
}

// prepare creates a directory and finds a port.
func prepare(binaries string) (*Server, error) {
	dir, err := os.MkdirTemp("", "pgtest-")
	if err != nil {
		return nil, err
	}
	s := &Server{binaries: binaries, dir: dir}
	if os.Getuid() == 0 { // PostgreSQL refuses to run as root
		nobody, err := user.Lookup("nobody")
		if err != nil {
			return nil, err
		}
		s.uid, _ = strconv.Atoi(nobody.Uid)
		s.gid, _ = strconv.Atoi(nobody.Gid)
		if err := os.Chown(dir, s.uid, s.gid); err != nil {
			return nil, err
		}
	}
	if s.port, err = freePort(); err != nil {
		return nil, err
	}
	s.base = &url.URL{Scheme: "postgres", User: url.User("animalstore"), Host: fmt.Sprint("127.0.0.1:", s.port), RawQuery: "sslmode=disable"}
	return s, nil
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// configure adds lines to the server's settings.
func (s *Server) configure(lines ...string) error {
	f, err := os.OpenFile(filepath.Join(s.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	own := []string{
		fmt.Sprint("port=", s.port), "listen_addresses='127.0.0.1'", fmt.Sprintf("unix_socket_directories='%s'", s.dir),
	}
	_, err = f.WriteString("\n" + strings.Join(append(own, lines...), "\n") + "\n")
	return errors.Join(err, f.Close())
}

// command runs one of PostgreSQL's programs and waits for it.
func (s *Server) command(name string, args ...string) error {
	return s.run(exec.Command(filepath.Join(s.binaries, name), args...))
}

// run runs a program as the user of the server and waits for it.
func (s *Server) run(cmd *exec.Cmd) error {
	cmd.SysProcAttr = s.attributes(syscall.SIGKILL)
	cmd.Dir = s.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(cmd.Path), err, out)
	}
	return nil
}

// launch starts the postmaster and waits until it responds.
func (s *Server) launch() error {
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	p := &process{exited: make(chan struct{})}
	started := make(chan error)
	go func() {
		// Linux sends the parent-death signal when the thread that started the process
		// ends.
		runtime.LockOSThread()
		cmd := exec.Command(filepath.Join(s.binaries, "postgres"), "-D", s.data())
		cmd.SysProcAttr = s.attributes(syscall.SIGQUIT) // an immediate shutdown
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
		return err
	}
	s.process = p
	return s.await(func(ctx context.Context) error { return s.Exec(ctx, "postgres", "SELECT 1") })
}

// await retries f until it succeeds.
func (s *Server) await(f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		attempt, cancel := context.WithTimeout(ctx, 10*time.Second)
		err := f(attempt)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-s.process.exited:
			return fmt.Errorf("the server has ended:\n%s", s.Log())
		case <-ctx.Done():
			return fmt.Errorf("the server does not respond: %w\n%s", err, s.Log())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Log returns the server's log.
func (s *Server) Log() string {
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
	deadline := time.Now().Add(time.Minute)
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
	case <-time.After(time.Minute):
		t.Fatalf("the server does not stop:\n%s", s.Log())
	}
}

// Restart starts a stopped server again, on the same port.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	if err := s.launch(); err != nil {
		t.Fatal(err)
	}
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
	standby, err := prepare(s.binaries)
	if err != nil {
		t.Fatal(err)
	}
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
	err := s.command("pg_basebackup", "-D", s.data(), "-R", "-X", "stream", "--checkpoint=fast", "--no-sync",
		"-d", fmt.Sprintf("host=127.0.0.1 port=%d user=animalstore application_name=standby_%d", primary.port, s.port))
	if err != nil {
		t.Fatal(err)
	}
	// Once promoted, it has no standby to wait for.
	if err := s.configure("synchronous_standby_names=''"); err != nil {
		t.Fatal(err)
	}
	if err := s.launch(); err != nil {
		t.Fatal(err)
	}
	primary.Set(t, "synchronous_standby_names", "*")
	err = primary.await(func(ctx context.Context) error {
		return primary.ask(ctx, "SELECT EXISTS (SELECT FROM pg_stat_replication WHERE sync_state = 'sync')")
	})
	if err != nil {
		t.Fatalf("the standby does not follow: %v\n%s", err, s.Log())
	}
}

// Set changes a setting of a running server and returns when it is in effect.
func (s *Server) Set(t testing.TB, name, value string) {
	t.Helper()
	if err := s.configure(fmt.Sprintf("%s='%s'", name, value)); err != nil {
		t.Fatal(err)
	}
	s.MustExec(t, "postgres", "SELECT pg_reload_conf()")
	// The postmaster notifies its children before it starts another, and the
	// checkpointer, which handles standbys, applies it before its next work.
	err := s.await(func(ctx context.Context) error {
		return s.ask(ctx, fmt.Sprintf("SELECT current_setting('%s') = '%s'", name, value))
	})
	if err != nil {
		t.Fatal(err)
	}
	s.MustExec(t, "postgres", "CHECKPOINT")
}

// Promote turns a standby into a primary, and returns when it is one.
func (s *Server) Promote(t testing.TB) {
	t.Helper()
	s.MustExec(t, "postgres", "SELECT pg_promote(true, 60)")
	if err := s.await(func(ctx context.Context) error { return s.ask(ctx, "SELECT NOT pg_is_in_recovery()") }); err != nil {
		t.Fatal(err)
	}
}

// ask returns an error unless a query returns true.
func (s *Server) ask(ctx context.Context, question string) error {
	conn, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var yes bool
	if err := conn.QueryRow(ctx, question).Scan(&yes); err != nil {
		return err
	}
	if !yes {
		return fmt.Errorf("not yet: %s", question)
	}
	return nil
}

// remove stops the server and deletes its files.
func (s *Server) remove() {
	if s.process != nil {
		select {
		case <-s.process.exited:
		default:
			s.Thaw()
			syscall.Kill(s.process.pid, syscall.SIGQUIT)
			select {
			case <-s.process.exited:
			case <-time.After(10 * time.Second):
				s.Kill()
			}
		}
	}
	os.RemoveAll(s.dir)
}
