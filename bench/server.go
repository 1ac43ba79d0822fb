package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// build compiles the server as a release is, with the given linker settings.
func build(ctx context.Context, work, name string, settings ...string) (string, error) {
	bin := filepath.Join(work, name)
	ldflags := "-s -w"
	for _, s := range settings {
		ldflags += " -X " + s
	}
	return bin, goBuild(ctx, "", name, bin, ldflags, "animalstore/cmd/animalstore")
}

// goBuild compiles a package of the module in dir without cgo.
func goBuild(ctx context.Context, dir, name, bin, ldflags, pkg string) error {
	say("building %s", name)
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", ldflags, "-o", bin, pkg)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", name, err, out)
	}
	return nil
}

// makeKey makes a key that no load here can exhaust.
func makeKey(ctx context.Context, bin, database string) (string, error) {
	cmd := exec.CommandContext(ctx, bin, "keys", "create", "--name", "bench", "--plan", "enterprise",
		"--per-minute", "1000000000", "--per-day", "1000000000", "--database", database)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("make a key: %w\n%s", err, stderr.Bytes())
	}
	return strings.TrimSpace(string(out)), nil
}

// server is a process under measurement.
type server struct {
	*process
	addr   string
	key    string        // what it lets in
	took   time.Duration // from its start to its first answer
	behind []*process    // what it stands on: their time counts as its own
}

// serve starts the animalstore at bin, with default flags but for what keeps it
// apart from others.
func serve(ctx context.Context, work, name, bin, database, key string) (*server, error) {
	return start(ctx, work, name, key, firstPage, func(addr string) []string {
		return []string{bin, "serve", "--listen", addr, "--database", database}
	})
}

const firstPage = "/v1/pets"

// start starts a server on a free port and returns once it has answered a GET
// of probe. It runs until it is stopped or ctx ends.
func start(ctx context.Context, work, name, key, probe string, command func(addr string) []string) (*server, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	started := time.Now()
	p, err := launch(ctx, work, name, syscall.SIGTERM, command(addr), nil)
	if err != nil {
		return nil, err
	}
	s := &server{process: p, addr: addr, key: key}
	refused := func(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }
	err = p.await(ctx, func(err error) bool { return !refused(err) }, func() error {
		status, body, err := s.fetch("GET", probe, "")
		if err == nil && status != 200 {
			err = fmt.Errorf("GET %s: %d: %s", probe, status, body)
		}
		return err
	})
	s.took = time.Since(started)
	return s, err
}

// cpu is the time spent so far by the server and what stands behind it.
func (s *server) cpu() (time.Duration, error) {
	sum, err := s.process.cpu()
	for _, p := range s.behind {
		more, behindErr := p.cpu()
		sum, err = sum+more, errors.Join(err, behindErr)
	}
	return sum, err
}

// stop ends the server and what stands behind it.
func (s *server) stop() {
	s.process.stop()
	for _, p := range s.behind {
		p.stop()
	}
}

var fetchClient = &http.Client{
	Timeout:   10 * time.Second,
	Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true},
}

// fetch asks any server once, however it frames its answer.
func (s *server) fetch(method, uri, body string) (status int, answer []byte, err error) {
	r, err := http.NewRequest(method, "http://"+s.addr+uri, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Authorization", "Bearer "+s.key)
	r.Header.Set("Content-Type", "application/json")
	response, err := fetchClient.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(response.Body)
	return response.StatusCode, answer, err
}

func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
