package main

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

//go:embed load.lua
var loadScript []byte

// generator sends load with wrk, which uses far less CPU than the servers it measures.
//
// wrk has one thread: on a machine with few cores, a second one would take CPU time
// from the server. In a turn during which the thread is nearly always busy, wrk itself
// is the limit; the notes show that.
type generator struct {
	wrk, script string

	busiest  float64       // the largest share of a core that wrk took in a turn
	elapsed  time.Duration // of all cores, during turns
	foreign  time.Duration // of that, used by processes other than wrk and the server
	repeated []string      // turns that had to be repeated
}

// notes say how far the turns can be trusted.
func (g *generator) notes() []string {
	notes := []string{fmt.Sprintf("wrk used at most %.0f %% of a core in a turn", 100*g.busiest)}
	if len(g.repeated) > 0 {
		notes = append(notes, "Repeated after a failure: "+strings.Join(g.repeated, ", "))
	}
	return append(notes, fmt.Sprintf("Other processes used %.0f %% of the machine", 100*g.foreignShare()))
}

// foreignShare is the share of the machine that other processes used.
func (g *generator) foreignShare() float64 {
	return g.foreign.Seconds() / max(g.elapsed, time.Nanosecond).Seconds()
}

func newGenerator(work string) *generator {
	wrk, err := exec.LookPath("wrk")
	if err != nil {
		check(fmt.Errorf("wrk is needed to send load: install the package wrk (%w)", err))
	}
	g := &generator{wrk: wrk, script: filepath.Join(work, "load.lua")}
	check(os.WriteFile(g.script, loadScript, 0o600))
	return g
}

// turn is the result of one burst to one server.
type turn struct {
	requests int
	seconds  float64
	cpu      time.Duration // of the server and its backends, user and system
	backends []time.Duration
}

func (t turn) perSecond() float64 { return float64(t.requests) / t.seconds }
func (t turn) cpuMicros() float64 { return float64(t.cpu.Microseconds()) / float64(t.requests) }

// backendMicros returns the CPU time per request of a backend.
func backendMicros(i int) func(turn) float64 {
	return func(t turn) float64 { return float64(t.backends[i].Microseconds()) / float64(t.requests) }
}

func (t turn) micros() float64 { return 1e6 * t.seconds / float64(t.requests) }

// burst sends a file of requests to a server, as fast as each connection gets
// responses. A response that isn't a success is an error.
func (g *generator) burst(ctx context.Context, w workload, s *server, file string, length time.Duration) (turn, error) {
	cpu, backends := s.cpu()
	busyBefore, allBefore := machineTime()
	t, used, err := g.runWrk(ctx, w, s, file, length)
	if err != nil {
		return t, err
	}
	t.cpu, t.backends = s.cpu()
	t.cpu -= cpu
	for i := range backends {
		t.backends[i] -= backends[i]
	}
	busyAfter, allAfter := machineTime()
	g.busiest = max(g.busiest, used.Seconds()/t.seconds)
	g.elapsed += allAfter - allBefore
	g.foreign += max(0, busyAfter-busyBefore-t.cpu-used)
	return t, nil
}

// runWrk returns wrk's measurements and the processor time it used.
func (g *generator) runWrk(ctx context.Context, w workload, s *server, file string, length time.Duration) (t turn, used time.Duration, err error) {
	// wrk counts in whole seconds, but an interrupt ends it cleanly. The duration given
	// here only limits a run in which the interrupt fails.
	args := []string{g.wrk, "-t1", "-c" + strconv.Itoa(w.connections),
		"-d" + strconv.Itoa(int(length.Seconds())+5) + "s", "--timeout", "10s", "-s", g.script,
		"-H", "Authorization: Bearer " + s.key, "-H", "Content-Type: application/json",
		"http://" + s.addr, "--", file, strconv.Itoa(rand.IntN(1 << 30))}
	if s.rotateKeys {
		args = append(args, s.keysFile)
	}
	if s.wrkCPU != "" {
		args = pinned(s.wrkCPU, args...)
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	var report bytes.Buffer
	cmd.Stdout = &report
	stderr := must(cmd.StderrPipe())
	check(cmd.Start())
	var last string
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		if last = lines.Text(); last == "ready" {
			time.AfterFunc(length, func() { cmd.Process.Signal(os.Interrupt) })
		}
	}
	if err := cmd.Wait(); err != nil {
		return t, 0, fmt.Errorf("wrk: %w\n%s%s", err, report.Bytes(), last)
	}
	if t, err = parseDone(last); err != nil {
		return t, 0, fmt.Errorf("%s: %w\n%s", s.name, err, report.Bytes())
	}
	return t, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}

// refusedError is the error of a burst with responses that weren't successes.
type refusedError struct{ error }

// parseDone reads the last line of load.lua.
func parseDone(line string) (turn, error) {
	var requests, micros, status, socket int
	if _, err := fmt.Sscanf(line, "done %d %d %d %d", &requests, &micros, &status, &socket); err != nil {
		return turn{}, fmt.Errorf("wrk ended with %q instead of a summary", line)
	}
	switch {
	case socket > 0:
		return turn{}, fmt.Errorf("%d connections failed or timed out", socket)
	case requests == 0 || micros == 0:
		return turn{}, errNothing
	}
	t := turn{requests: requests, seconds: float64(micros) / 1e6}
	if status > 0 {
		return t, refusedError{fmt.Errorf("%d of %d responses were errors", status, requests)}
	}
	return t, nil
}

// result is a server's result under a workload, compared with the first server of the
// same race, which is ours.
type result struct {
	work        string
	connections int
	server      string
	turns, ours []turn
	bar         bar // for our throughput as a multiple of the server's
}

// race gives servers turns under a workload, first in a random order and then in
// reverse: a server must not always follow the one that leaves the disk busy.
// Disturbances longer than a turn affect all of them alike.
func (b *bench) race(w workload, servers ...*server) []result {
	progress("%s, %d connections", w.title, w.connections)
	client.CloseIdleConnections()
	var files []string
	var results []result
	for _, s := range servers {
		files = append(files, b.writeRequests(w, s))
		results = append(results, result{work: w.title, connections: w.connections, server: s.name, bar: barFor(b.command, w.name, s.name)})
	}
	order := rand.Perm(len(servers))
	for round := range b.rounds + 1 {
		length := b.burst
		if round == 0 { // not counted: caches and heaps settle
			length = b.warmup
		}
		if length == 0 {
			continue
		}
		if round%2 == 1 {
			order = rand.Perm(len(servers))
		} else {
			slices.Reverse(order)
		}
		for _, i := range order {
			t, err := b.load.turn(b.ctx, w, servers[i], files[i], length)
			if err != nil {
				check(fmt.Errorf("%s: %w", w.title, err))
			}
			if round > 0 {
				results[i].turns = append(results[i].turns, t)
			}
		}
	}
	for i := range results {
		results[i].ours = results[0].turns
	}
	return results
}

// writeRequests writes a workload's requests to a file for load.lua.
func (b *bench) writeRequests(w workload, s *server) (file string) {
	file = filepath.Join(b.work, fmt.Sprintf("requests-%s-%s", w.name, s.name))
	check(os.WriteFile(file, []byte(strings.Join(w.requests(s.api, s.pets), "\n")+"\n"), 0o600))
	return file
}

// errNothing is the error of a burst that ended before the first response, as can
// happen when a thousand connections have to be opened on a busy machine.
var errNothing = errors.New("there was no response")

// longestTry is how long a burst without a response may have been to be repeated.
const longestTry = 4 * time.Second

// turn is a burst that is repeated if there was no response, or if a peer failed: a
// whole run must not be lost to a peer that is starved for a while. Each repetition
// takes twice as long, and after a failure there are at most two.
func (g *generator) turn(ctx context.Context, w workload, s *server, file string, length time.Duration) (turn, error) {
	for tries := 1; ; tries++ {
		t, err := g.burst(ctx, w, s, file, length)
		again := s.peer && tries < 3
		if errors.Is(err, errNothing) {
			again = length < longestTry
		}
		if err == nil || !again || ctx.Err() != nil {
			return t, err
		}
		progress("trying again: %v", err)
		g.repeated = append(g.repeated, fmt.Sprintf("%s of %s, %d connections", w.title, s.name, w.connections))
		length *= 2
	}
}
