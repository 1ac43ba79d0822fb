//go:build unix

// Package redistest starts Redis servers for tests, and makes them fail.
package redistest

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"animalstore/internal/testenv"
)

// commandTimeout limits the commands that the test itself sends.
const commandTimeout = 10 * time.Second

// connBuffer is the size of the buffers for these commands.
const connBuffer = 4 << 10

// Server is a Redis server.
type Server struct {
	t    testing.TB
	Addr string
	dir  string
	args []string // of its command line, after ours

	first  []string // of its command line, before ours; nil except for a sentinel
	secure bool     // it accepts only TLS, with the password

	mu  sync.Mutex
	cmd *exec.Cmd // nil while it isn't running
}

// Start runs a server on a free port, without persistence. It is killed when the
// test ends. args are appended to its command line.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	return start(t, false, args)
}

func start(t testing.TB, secure bool, args []string) *Server {
	t.Helper()
	s := &Server{t: t, secure: secure, dir: t.TempDir(), args: append([]string{"--save", "", "--appendonly", "no"}, args...)}
	s.run()
	return s
}

// run launches a server on a free port until the test ends.
func (s *Server) run() {
	s.t.Helper()
	testenv.Need(s.t, "redis-server")
	// Another process may take the port before the server does.
	for attempt := 0; ; attempt++ {
		s.Addr = freeAddr(s.t)
		err := s.launch()
		if err == nil {
			break
		}
		if attempt == 5 {
			s.t.Fatal(err)
		}
	}
	s.t.Cleanup(s.Kill)
}

func freeAddr(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// launch starts the server and waits until it responds or exits.
func (s *Server) launch() error {
	ports := []string{"--port", s.port()}
	if s.secure {
		ports = []string{"--port", "0", "--tls-port", s.port()}
	}
	cmd := exec.Command("redis-server", slices.Concat(s.first, ports, []string{"--bind", "127.0.0.1", "--dir", s.dir}, s.args)...)
	log, err := os.Create(filepath.Join(s.dir, "redis.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = attributes()
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() { cmd.Wait(); close(ended) }()
	exited := false
	testenv.Eventually(s.t, "redis-server responds or exits", func() bool {
		select {
		case <-ended:
			exited = true
		default:
		}
		return exited || s.responds()
	})
	if exited {
		output, _ := os.ReadFile(log.Name())
		return fmt.Errorf("redis-server exited: %s", output)
	}
	s.mu.Lock()
	s.cmd = cmd
	s.mu.Unlock()
	return nil
}

func (s *Server) responds() bool {
	pong, err := s.Do("PING").ToString()
	return err == nil && pong == "PONG"
}

func (s *Server) port() string {
	_, port, _ := net.SplitHostPort(s.Addr)
	return port
}

// argument is the value of an argument that the server was started with.
func (s *Server) argument(name string) string { return s.args[slices.Index(s.args, name)+1] }

// LongTimeout is the option of an address with which a limiter waits for Redis for as long as
// a busy machine may take.
var LongTimeout = "timeout=" + testenv.Deadline.String()

// URL is the address for a limiter, which waits as long as LongTimeout.
func (s *Server) URL() string { return "redis://" + s.Addr + "?" + LongTimeout }

// Kill kills the server, which loses all its data.
func (s *Server) Kill() {
	s.mu.Lock()
	cmd := s.cmd
	s.cmd = nil
	s.mu.Unlock()
	if cmd == nil {
		return
	}
	cmd.Process.Signal(syscall.SIGKILL)
	testenv.Eventually(s.t, "the server is gone", func() bool {
		c, err := net.DialTimeout("tcp", s.Addr, time.Second)
		if err == nil {
			c.Close()
		}
		return err != nil
	})
}

// Restart kills the server if it is running, and starts it again on the same port.
func (s *Server) Restart() {
	s.t.Helper()
	s.Kill()
	// The port may briefly be in use as the source port of another connection.
	var err error
	testenv.Eventually(s.t, "the server is running again", func() bool {
		err = s.launch()
		return err == nil
	})
}

// Stop freezes the server: it keeps its data and connections but doesn't respond.
func (s *Server) Stop() { s.signal(syscall.SIGSTOP) }

// Cont lets a frozen server continue.
func (s *Server) Cont() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		s.t.Fatalf("%v: the server isn't running", sig)
	}
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatalf("%v: %v", sig, err)
	}
}

// Flush deletes everything.
func (s *Server) Flush() {
	s.t.Helper()
	if err := s.Do("FLUSHDB").Error(); err != nil {
		s.t.Errorf("flush Redis: %v", err)
	}
}

// Do runs a command on a new connection: an old one may be from before a restart.
func (s *Server) Do(command string, args ...string) rueidis.RedisResult {
	options := rueidis.ClientOption{
		InitAddress: []string{s.Addr}, ForceSingleClient: true,
		ConnWriteTimeout: commandTimeout, DisableRetry: true, DisableCache: true, ClientSetInfo: rueidis.DisableClientSetInfo,
		ReadBufferEachConn: connBuffer, WriteBufferEachConn: connBuffer,
	}
	if s.secure {
		options.Password, options.TLSConfig = password, &tls.Config{InsecureSkipVerify: true}
	}
	client, err := rueidis.NewClient(options)
	if client != nil {
		defer client.Close()
	}
	if err != nil {
		return rueidis.NewErrorResult(err)
	}
	return client.Do(context.Background(), client.B().Arbitrary(command).Args(args...).Build())
}

// must runs a command that has to work and returns its reply, if that is a string.
func (s *Server) must(command ...string) string {
	s.t.Helper()
	reply := s.Do(command[0], command[1:]...)
	if err := reply.Error(); err != nil {
		s.t.Fatalf("%s: %v", strings.Join(command, " "), err)
	}
	text, _ := reply.ToString()
	return text
}

func mustInt(t testing.TB, s *Server, command ...string) int64 {
	t.Helper()
	n, err := s.Do(command[0], command[1:]...).AsInt64()
	if err != nil {
		t.Fatalf("%s: %v", strings.Join(command, " "), err)
	}
	return n
}

// EventuallyReplicates waits until the server is a replica that is up to date.
func (s *Server) EventuallyReplicates() {
	s.t.Helper()
	testenv.Eventually(s.t, "the replica is connected", s.replicates)
}

func (s *Server) replicates() bool {
	info, err := s.Do("INFO", "replication").ToString()
	return err == nil && field(info, "role") == "slave" && field(info, "master_link_status") == "up"
}

// IsPrimary reports whether the server is a primary now.
func (s *Server) IsPrimary() bool {
	info, err := s.Do("INFO", "replication").ToString()
	return err == nil && field(info, "role") == "master"
}

// Serves reports whether the server is a primary that accepts requests now.
func (s *Server) Serves() bool {
	if !s.IsPrimary() {
		return false
	}
	info, err := s.Do("CLUSTER", "INFO").ToString()
	return err != nil || field(info, "cluster_state") == "ok" // the error of a Redis that isn't in a Cluster
}

// ResetCalls makes Calls count from zero.
func (s *Server) ResetCalls() {
	s.t.Helper()
	if err := s.Do("CONFIG", "RESETSTAT").Error(); err != nil {
		s.t.Fatalf("reset statistics: %v", err)
	}
}

// Calls returns how often each command was called, without those of the test
// itself. Redis also counts the commands that scripts call, under their own names.
func (s *Server) Calls() map[string]int64 {
	s.t.Helper()
	info, err := s.Do("INFO", "commandstats").ToString()
	if err != nil {
		s.t.Fatalf("command statistics: %v", err)
	}
	calls := map[string]int64{}
	for line := range strings.Lines(info) {
		name, rest, ok := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		if !ok || !strings.HasPrefix(line, "cmdstat_") {
			continue
		}
		n, _, _ := strings.Cut(rest, ",")
		calls[name], _ = strconv.ParseInt(n, 10, 64)
	}
	for _, own := range []string{"hello", "info", "config|resetstat", "ping"} {
		delete(calls, own)
	}
	return calls
}

func field(info, name string) string {
	_, rest, _ := strings.Cut(info, name+":")
	value, _, _ := strings.Cut(rest, "\r\n")
	return value
}
