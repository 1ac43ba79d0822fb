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
	"strconv"
	"strings"
	"time"
)

//go:embed load.lua
var loadScript []byte

// generator sends load with wrk, which costs a fraction of what it measures.
//
// It has one thread: on a machine with few cores a second one would take from
// the server what it gives to the client. A turn during which that thread is
// nearly always busy measures wrk, which the notes then say.
type generator struct {
	wrk    string
	script string
	busy   float64 // the largest share of a core that wrk took in a turn

	machine, foreign time.Duration // of all cores during turns; not wrk's or the server's

	repeated []string // turns that had to be given again
}

// notes says how far the turns can be trusted.
func (g *generator) notes(t *table) {
	t.note("wrk used at most %.0f %% of a core in a turn", 100*g.busy)
	if len(g.repeated) > 0 {
		t.note("Given again after a failure: %s", strings.Join(g.repeated, ", "))
	}
	t.note("Others used %.0f %% of the machine meanwhile", 100*g.foreignShare())
}

// foreignShare is the part of the machine that others took during turns.
func (g *generator) foreignShare() float64 {
	return g.foreign.Seconds() / max(g.machine, time.Nanosecond).Seconds()
}

func newGenerator(work string) (*generator, error) {
	wrk, err := exec.LookPath("wrk")
	if err != nil {
		return nil, fmt.Errorf("wrk is needed to send load: install the package wrk (%w)", err)
	}
	g := &generator{wrk: wrk, script: filepath.Join(work, "load.lua")}
	return g, os.WriteFile(g.script, loadScript, 0o600)
}

// turn is what one server did in one burst.
type turn struct {
	requests int
	seconds  float64
	cpu      time.Duration // of the server, user and system
	p50, p99 time.Duration // from request to answer
}

func (t turn) perSecond() float64 { return float64(t.requests) / t.seconds }
func (t turn) cpuMicros() float64 { return float64(t.cpu.Microseconds()) / float64(t.requests) }
func (t turn) micros() float64    { return 1e6 * t.seconds / float64(t.requests) }
func (t turn) p50Millis() float64 { return float64(t.p50.Microseconds()) / 1000 }
func (t turn) p99Millis() float64 { return float64(t.p99.Microseconds()) / 1000 }

// plus has no percentiles: those of two turns together are not known.
func (t turn) plus(other turn) turn {
	return turn{requests: t.requests + other.requests, seconds: t.seconds + other.seconds, cpu: t.cpu + other.cpu}
}

// burst sends a contestant its requests, as fast as they are answered over that
// many connections. An answer that is no success is an error.
func (g *generator) burst(ctx context.Context, c contestant, connections int, length time.Duration) (turn, error) {
	s := c.server
	before, err := s.cpu()
	if err != nil {
		return turn{}, err
	}
	busyBefore, allBefore, err := machineTime()
	if err != nil {
		return turn{}, err
	}
	// wrk counts in whole seconds, but an interrupt ends it in good order. The
	// time given here only bounds a run in which that fails.
	args := []string{"-t1", "-c" + strconv.Itoa(connections),
		"-d" + strconv.Itoa(int(length.Seconds())+5) + "s", "--timeout", "10s", "-s", g.script,
		"-H", "Authorization: Bearer " + s.key, "-H", "Content-Type: application/json",
		"http://" + s.addr, "--", c.file, strconv.Itoa(rand.IntN(1 << 30))}
	if c.keys != "" {
		args = append(args, c.keys)
	}
	cmd := exec.CommandContext(ctx, g.wrk, args...)
	var report bytes.Buffer
	cmd.Stdout = &report
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return turn{}, err
	}
	if err := cmd.Start(); err != nil {
		return turn{}, err
	}
	var last string
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		if last = lines.Text(); last == "ready" {
			time.AfterFunc(length, func() { cmd.Process.Signal(os.Interrupt) })
		}
	}
	if err := cmd.Wait(); err != nil {
		return turn{}, fmt.Errorf("wrk: %w\n%s%s", err, report.Bytes(), last)
	}
	t, err := parseDone(last)
	if err != nil {
		return turn{}, fmt.Errorf("%s: %w\n%s", s.name, err, report.Bytes())
	}
	after, err := s.cpu()
	if err != nil {
		return turn{}, err
	}
	busyAfter, allAfter, err := machineTime()
	if err != nil {
		return turn{}, err
	}
	t.cpu = after - before
	used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	g.busy = max(g.busy, used.Seconds()/t.seconds)
	g.machine += allAfter - allBefore
	g.foreign += max(0, busyAfter-busyBefore-t.cpu-used)
	return t, nil
}

// parseDone reads the last line of load.lua.
func parseDone(line string) (turn, error) {
	var requests, micros, status, socket, p50, p99 int
	if _, err := fmt.Sscanf(line, "done %d %d %d %d %d %d", &requests, &micros, &status, &socket, &p50, &p99); err != nil {
		return turn{}, fmt.Errorf("wrk ended with %q instead of a summary", line)
	}
	switch {
	case status > 0:
		return turn{}, fmt.Errorf("%d of %d answers were refusals", status, requests)
	case socket > 0:
		return turn{}, fmt.Errorf("%d connections failed or timed out", socket)
	case requests == 0 || micros == 0:
		return turn{}, errNothing
	}
	return turn{
		requests: requests,
		seconds:  float64(micros) / 1e6,
		p50:      time.Duration(p50) * time.Microsecond,
		p99:      time.Duration(p99) * time.Microsecond,
	}, nil
}

// contestant is a server and the load it gets.
type contestant struct {
	*server
	file string // of requests
	keys string // a file of keys to take in turn, or "" for the server's one
	peer bool   // not ours to mend: a turn that fails is given once more
}

// race gives the contestants turns, each round in another order, and returns
// the turns of each. What disturbs the machine for longer than a turn disturbs
// them alike.
func (g *generator) race(ctx context.Context, o options, what string, connections int, contestants ...contestant) ([][]turn, error) {
	say("%s, %d connections", what, connections)
	turns := make([][]turn, len(contestants))
	for _, c := range contestants { // not counted: caches and heaps settle
		if _, err := g.turn(ctx, what, c, connections, o.warm); err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
	}
	for round := range o.rounds {
		for i := range contestants {
			i = (i + round) % len(contestants)
			t, err := g.turn(ctx, what, contestants[i], connections, o.burst)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", what, err)
			}
			turns[i] = append(turns[i], t)
		}
	}
	return turns, nil
}

// errNothing is a burst that was over before the first answer, as can happen
// where a thousand connections have to be made on a busy machine.
var errNothing = errors.New("nothing was answered")

// turn is a burst, given again if nothing was answered or if it is a peer's that
// failed: a whole run must not be lost to one that starves for a while. Twice as
// long each time, and three times at most.
func (g *generator) turn(ctx context.Context, what string, c contestant, connections int, length time.Duration) (turn, error) {
	for tries := 1; ; tries++ {
		t, err := g.burst(ctx, c, connections, length)
		if err == nil || tries == 3 || ctx.Err() != nil || !c.peer && !errors.Is(err, errNothing) {
			return t, err
		}
		say("once more: %v", err)
		g.repeated = append(g.repeated, fmt.Sprintf("%s of %s, %d connections", what, c.name, connections))
		length *= 2
	}
}

// writeRequests writes a file for load.lua.
func writeRequests(path string, requests []string) error {
	return os.WriteFile(path, []byte(strings.Join(requests, "\n")+"\n"), 0o600)
}
