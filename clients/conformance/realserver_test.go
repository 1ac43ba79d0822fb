package conformance

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"animalstore"
	"animalstore/client"
	"animalstore/internal/testenv"
)

// ownerKey is the first key of every server here, with all permissions.
const ownerKey = "conformance-owner-key-of-a-throwaway-store"

// realServer is the built program with its own database. It keeps its address over
// restarts.
type realServer struct {
	t       testing.TB
	url     string
	dir     string
	args    []string
	cmd     *exec.Cmd
	log     *os.File
	stopped chan error
}

// startReal starts a server on a new database.
func startReal(t testing.TB, args ...string) *realServer {
	t.Helper()
	if _, err := program(); err != nil {
		t.Fatal(err)
	}
	s := &realServer{t: t, url: ownAddress(t), dir: t.TempDir(), args: args}
	var err error
	if s.log, err = os.Create(filepath.Join(s.dir, "log")); err != nil {
		t.Fatal(err)
	}
	s.start()
	t.Cleanup(func() {
		s.end(syscall.SIGKILL)
		if t.Failed() {
			text, _ := os.ReadFile(s.log.Name())
			t.Logf("the server's log:\n%s", text)
		}
		s.log.Close()
	})
	s.awaitReady()
	return s
}

// ownAddress is the URL of a server that keeps its address while it is down. Its port is
// below those that systems assign, so that no other test gets it meanwhile.
func ownAddress(t testing.TB) string {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", 20_000+rand.IntN(12_000)))
		if err == nil {
			defer l.Close()
			return "http://" + l.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}

func (s *realServer) start() {
	s.t.Helper()
	path, _ := program()
	args := append([]string{"serve", "--listen", strings.TrimPrefix(s.url, "http://"), "--ops-listen", "", "--database", "sqlite:" + filepath.Join(s.dir, "store.db"), "--webhook-networks", "127.0.0.0/8"}, s.args...)
	s.cmd = exec.Command(path, args...)
	s.cmd.Env = append(withoutSettings(), "ANIMALSTORE_OWNER_KEY="+ownerKey)
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.stopped = make(chan error, 1)
	go func(cmd *exec.Cmd, stopped chan<- error) { stopped <- cmd.Wait() }(s.cmd, s.stopped)
}

// end sends a signal and waits until the process is gone.
func (s *realServer) end(signal syscall.Signal) {
	_ = s.cmd.Process.Signal(signal)
	select {
	case err := <-s.stopped:
		s.stopped <- err
	case <-time.After(testenv.Deadline):
		s.t.Errorf("the server didn't end after %v", signal)
	}
}

func (s *realServer) awaitReady() {
	s.t.Helper()
	testenv.Eventually(s.t, "the server is ready", func() bool {
		res, err := http.Get(s.url + "/readyz")
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
}

// owner is a Go client with the owner's key that survives restarts of the server.
func (s *realServer) owner() *client.Client {
	s.t.Helper()
	c, err := client.New(s.url, ownerKey, client.WithMaxAttempts(1000), client.WithBackoff(20*time.Millisecond, 200*time.Millisecond))
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// newKey creates a key with a limit per minute.
func (s *realServer) newKey(name string, perMinute int64) string {
	s.t.Helper()
	key, err := s.owner().CreateKey(s.t.Context(), client.NewKey{
		Name: name, Plan: animalstore.PlanEnterprise, Limits: animalstore.Limits{PerMinute: perMinute, PerDay: 1 << 40},
		Permissions: animalstore.Read | animalstore.Write,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return key.Secret
}

// program builds the program once and returns its path. TestMain removes it.
var program = sync.OnceValues(func() (string, error) { return testenv.Build(workDir) })

// withoutSettings is the environment without settings of the program.
func withoutSettings() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "ANIMALSTORE_") })
}
