package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a program that runs until it is stopped or the benchmark ends.
type process struct {
	cmd    *exec.Cmd
	cancel context.CancelFunc
	log    string // the file with its output
}

// launch starts a program that the given signal ends. Its output goes to a file.
func (b *bench) launch(name string, signal os.Signal, as *syscall.SysProcAttr, args ...string) *process {
	log := must(os.Create(filepath.Join(b.work, name+".log")))
	defer log.Close()
	ctx, cancel := context.WithCancel(b.ctx)
	p := &process{exec.CommandContext(ctx, args[0], args[1:]...), cancel, log.Name()}
	p.cmd.Cancel = func() error { return p.cmd.Process.Signal(signal) }
	p.cmd.WaitDelay = 20 * time.Second // then it is killed
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.SysProcAttr = log, log, as
	check(p.cmd.Start())
	b.started = append(b.started, p)
	return p
}

// await calls ready until it succeeds, at first in quick succession, then at longer
// intervals.
func (b *bench) await(p *process, ready func()) {
	began := time.Now()
	for {
		err := attempt(ready)
		if err == nil {
			return
		}
		if b.ctx.Err() != nil || time.Since(began) > 30*time.Second {
			p.stop()
			text, _ := os.ReadFile(p.log)
			check(fmt.Errorf("start %s: %w\n%s", p.cmd, err, text))
		}
		time.Sleep(min(max(200*time.Microsecond, time.Since(began)/100), 50*time.Millisecond))
	}
}

// stop lets the process shut down cleanly and waits until it has. A second call
// does nothing.
func (p *process) stop() {
	p.cancel()
	p.cmd.Wait()
}

// tick is the unit of time in /proc: USER_HZ is 100 wherever Go runs on Linux.
const tick = 10 * time.Millisecond

// machineTime is how long all cores together have been busy so far, including time used
// by the host of a virtual machine, and how much time has passed.
func machineTime() (busy, all time.Duration) {
	line, _, _ := strings.Cut(string(must(os.ReadFile("/proc/stat"))), "\n")
	// cpu user nice system idle iowait irq softirq steal; the fields after these
	// are already included in them.
	for i, field := range strings.Fields(line)[1:9] {
		time := time.Duration(must(strconv.Atoi(field))) * tick
		all += time
		if i != 3 && i != 4 {
			busy += time
		}
	}
	return busy, all
}

// procStat is the information in /proc about a process.
type procStat struct {
	parent int
	cpu    time.Duration // including children it has waited for
}

func parseStat(stat string) procStat {
	// The second field is a name in brackets, which may contain anything.
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 15 {
		check(fmt.Errorf("got %d fields after the name in %q, want 15 or more", len(fields), stat))
	}
	s := procStat{parent: must(strconv.Atoi(fields[1]))}
	for _, field := range fields[11:15] { // utime, stime, cutime, cstime
		s.cpu += time.Duration(must(strconv.Atoi(field))) * tick
	}
	return s
}

// family is a process with all its descendants: a server may be several processes.
func family(root int) map[int]procStat {
	all := map[int]procStat{}
	for _, path := range must(filepath.Glob("/proc/[0-9]*/stat")) {
		if text, err := os.ReadFile(path); err == nil { // otherwise it has ended
			all[must(strconv.Atoi(strings.Split(path, "/")[2]))] = parseStat(string(text))
		}
	}
	found := map[int]procStat{}
	for pid := range all {
		for at := pid; at > 1; at = all[at].parent {
			if at == root {
				found[pid] = all[pid]
			}
		}
	}
	if len(found) == 0 {
		check(fmt.Errorf("process %d has ended", root))
	}
	return found
}

// cpu is the processor time of the process and its descendants so far.
func (p *process) cpu() (sum time.Duration) {
	for _, m := range family(p.cmd.Process.Pid) {
		sum += m.cpu
	}
	return sum
}

// peakMemory is the most resident memory that the process and its descendants have had,
// in MiB.
func (p *process) peakMemory() (sum float64) {
	for pid := range family(p.cmd.Process.Pid) {
		sum += statusMemory(pid, "VmHWM")
	}
	return sum
}

// statusMemory is a field of a process's status in /proc, in MiB.
func statusMemory(pid int, field string) float64 {
	return parseMemory(string(must(os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)))), field)
}

func parseMemory(status, field string) (mib float64) {
	for line := range strings.Lines(status) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			must(fmt.Sscanf(value, "%f kB", &mib))
			return mib / 1024
		}
	}
	check(fmt.Errorf("there is no %s in %q", field, status))
	return 0
}
