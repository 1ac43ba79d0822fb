package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// build compiles the server as a release is, with the given linker settings.
func build(ctx context.Context, work, name string, settings ...string) (string, error) {
	say("building %s", name)
	bin := filepath.Join(work, name)
	ldflags := "-s -w"
	for _, s := range settings {
		ldflags += " -X " + s
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", ldflags, "-o", bin, "animalstore/cmd/animalstore")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", name, err, out)
	}
	return bin, nil
}

// makeKey makes a key that no load here can exhaust.
func makeKey(ctx context.Context, bin, database string) (string, error) {
	cmd := exec.CommandContext(ctx, bin, "keys", "create", "--name", "bench", "--plan", "enterprise",
		"--per-minute", "1000000000", "--per-day", "1000000000", "--database", "sqlite:"+database)
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
	name string
	addr string
	key  string        // what it lets in
	took time.Duration // from its start to its first answer
	cmd  *exec.Cmd
	end  context.CancelFunc
}

// serve starts the animalstore at bin, with default flags but for what keeps it
// apart from others.
func serve(ctx context.Context, work, name, bin, database, key string) (*server, error) {
	return start(ctx, work, name, key, func(addr string) []string {
		return []string{bin, "serve", "--listen", addr, "--database", "sqlite:" + database}
	})
}

// start starts a server on a free port and returns once it has listed animals.
// It runs until it is stopped or ctx ends.
func start(ctx context.Context, work, name, key string, command func(addr string) []string) (*server, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(work, name+".log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	args := command(addr)
	s := &server{name: name, addr: addr, key: key}
	ctx, s.end = context.WithCancel(ctx)
	s.cmd = exec.CommandContext(ctx, args[0], args[1:]...)
	s.cmd.Cancel = func() error { return s.cmd.Process.Signal(syscall.SIGTERM) }
	s.cmd.WaitDelay = 20 * time.Second // then it is killed
	s.cmd.Stdout, s.cmd.Stderr = log, log
	started := time.Now()
	if err := s.cmd.Start(); err != nil {
		s.end()
		return nil, err
	}
	for {
		a, err := s.ask("GET", "/v1/pets", "")
		if err == nil && a.Status == 200 {
			s.took = time.Since(started)
			return s, nil
		}
		if err == nil {
			err = fmt.Errorf("%s: %s", a, a.Body)
		}
		if !errors.Is(err, syscall.ECONNREFUSED) || time.Since(started) > 30*time.Second {
			s.stop()
			text, _ := os.ReadFile(log.Name())
			return nil, fmt.Errorf("start %s: %w\n%s", name, err, text)
		}
		time.Sleep(200 * time.Microsecond)
	}
}

// stop ends the process in good order and waits for that.
func (s *server) stop() {
	s.end()
	s.cmd.Wait()
}

// tick is the unit of time in /proc: USER_HZ is 100 wherever Go runs on Linux.
const tick = 10 * time.Millisecond

// machineTime is the time all cores together have been busy so far, time taken
// by the host of a virtual machine included, and the time they had.
func machineTime() (busy, all time.Duration, err error) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0, err
	}
	line, _, _ := strings.Cut(string(stat), "\n")
	// cpu user nice system idle iowait irq softirq steal; what follows is
	// counted among these already.
	fields := strings.Fields(line)
	if len(fields) < 9 {
		return 0, 0, fmt.Errorf("/proc/stat starts with %q", line)
	}
	for i, field := range fields[1:9] {
		ticks, err := strconv.Atoi(field)
		if err != nil {
			return 0, 0, fmt.Errorf("/proc/stat: %w", err)
		}
		all += time.Duration(ticks) * tick
		if i != 3 && i != 4 {
			busy += time.Duration(ticks) * tick
		}
	}
	return busy, all, nil
}

// cpu is the time the process has spent on all cores so far.
func (s *server) cpu() (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("%s is gone: %w", s.name, err)
	}
	// The second field is a name in brackets, which may hold anything.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat has only %d fields", s.cmd.Process.Pid, len(fields))
	}
	user, err1 := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	return time.Duration(user+system) * tick, errors.Join(err1, err2)
}

func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}
