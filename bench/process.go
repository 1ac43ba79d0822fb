package main

import (
	"bytes"
	"context"
	"errors"
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
	name string
	cmd  *exec.Cmd
	end  context.CancelFunc
	log  string // a file of what it said
}

// launch starts cmd and has signal end it. What it says goes to a file in dir.
func launch(ctx context.Context, dir, name string, signal os.Signal, args []string, attr *syscall.SysProcAttr) (*process, error) {
	log, err := os.Create(filepath.Join(dir, name+".log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p := &process{name: name, log: log.Name()}
	ctx, p.end = context.WithCancel(ctx)
	p.cmd = exec.CommandContext(ctx, args[0], args[1:]...)
	p.cmd.Cancel = func() error { return p.cmd.Process.Signal(signal) }
	p.cmd.WaitDelay = 20 * time.Second // then it is killed
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.SysProcAttr = log, log, attr
	if err := p.cmd.Start(); err != nil {
		p.end()
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

// await asks ready until it succeeds, again and again at first and then at ease.
// An error that is final ends the wait: one that does not mean that nobody
// listens yet.
func (p *process) await(ctx context.Context, final func(error) bool, ready func() error) error {
	began := time.Now()
	for {
		err := ready()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil || final(err) || time.Since(began) > 30*time.Second {
			p.stop()
			text, _ := os.ReadFile(p.log)
			return fmt.Errorf("start %s: %w\n%s", p.name, err, text)
		}
		time.Sleep(min(max(200*time.Microsecond, time.Since(began)/100), 50*time.Millisecond))
	}
}

// stop ends the process in good order and waits for that.
func (p *process) stop() {
	p.end()
	p.cmd.Wait()
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

// procStat is what /proc tells of a process.
type procStat struct {
	parent int
	cpu    time.Duration // its own, and that of children it has waited for
}

func parseStat(stat []byte) (procStat, error) {
	// The second field is a name in brackets, which may hold anything.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 15 {
		return procStat{}, fmt.Errorf("got %d fields after the name in %q, want 15 or more", len(fields), stat)
	}
	var numbers [5]int
	var errs []error
	for i, field := range []int{1, 11, 12, 13, 14} { // ppid, utime, stime, cutime, cstime
		n, err := strconv.Atoi(fields[field])
		numbers[i], errs = n, append(errs, err)
	}
	return procStat{numbers[0], time.Duration(numbers[1]+numbers[2]+numbers[3]+numbers[4]) * tick}, errors.Join(errs...)
}

// family are a process and all that descend from it: a server may be several.
func family(root int) (map[int]procStat, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	all := map[int]procStat{}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue // gone meanwhile
		}
		if all[pid], err = parseStat(text); err != nil {
			return nil, err
		}
	}
	found := map[int]procStat{}
	for pid := range all {
		for at := pid; at > 1; at = all[at].parent {
			if at == root {
				found[pid] = all[pid]
				break
			}
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("process %d is gone", root)
	}
	return found, nil
}

// cpu is the time the process and its children have spent on all cores so far.
func (p *process) cpu() (time.Duration, error) {
	members, err := family(p.cmd.Process.Pid)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", p.name, err)
	}
	var sum time.Duration
	for _, m := range members {
		sum += m.cpu
	}
	return sum, nil
}

// memory is how much the process and its children have in memory, now and at
// their highest, in MiB.
func (p *process) memory() (now, highest float64, err error) {
	members, err := family(p.cmd.Process.Pid)
	if err != nil {
		return 0, 0, fmt.Errorf("%s: %w", p.name, err)
	}
	for pid := range members {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			return 0, 0, err
		}
		rss, peak, err := parseMemory(string(status))
		if err != nil {
			return 0, 0, fmt.Errorf("/proc/%d/status: %w", pid, err)
		}
		now, highest = now+rss, highest+peak
	}
	return now, highest, nil
}

func parseMemory(status string) (rss, peak float64, err error) {
	for line := range strings.Lines(status) {
		for name, into := range map[string]*float64{"VmRSS:": &rss, "VmHWM:": &peak} {
			if value, ok := strings.CutPrefix(line, name); ok {
				var kib float64
				if _, err := fmt.Sscanf(value, "%f kB", &kib); err != nil {
					return 0, 0, fmt.Errorf("%q: %w", line, err)
				}
				*into = kib / 1024
			}
		}
	}
	if rss == 0 || peak == 0 {
		return 0, 0, errors.New("it tells no VmRSS or VmHWM")
	}
	return rss, peak, nil
}
