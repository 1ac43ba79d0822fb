package e2e

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"animalstore/internal/testenv"
)

// needsStrace skips a test if strace can't trace here.
func needsStrace(t *testing.T) {
	t.Helper()
	testenv.Need(t, "strace")
	if out, err := exec.Command("strace", "-f", "--seccomp-bpf", "-e", "trace=fsync", "-o", os.DevNull, "true").CombinedOutput(); err != nil {
		testenv.Missing(t, "strace may not trace on this machine: %v %s", err, out)
	}
}

// withStrace runs the binary under strace, which leaves its process group so that it gets no
// signals. The trace goes to a file.
func withStrace(file string, args ...string) option {
	return func(s *settings) {
		s.wrapper = append([]string{"strace", "-DDD", "-f", "--seccomp-bpf", "-o", file}, args...)
	}
}

// awaitTrace waits until the trace of a server that has ended is complete.
func (s *server) awaitTrace(file string) {
	s.t.Helper()
	end := regexp.MustCompile(fmt.Sprintf(`(?m)^%d +\+\+\+ (exited|killed)`, s.cmd.Process.Pid))
	testenv.Eventually(s.t, "the trace is complete", func() bool {
		f, err := os.Open(file)
		if err != nil {
			return false
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil && info.Size() > 4096 {
			f.Seek(-4096, io.SeekEnd)
		}
		var tail bytes.Buffer
		tail.ReadFrom(f)
		return end.Match(tail.Bytes())
	})
}

// syscallEvent is the beginning or the end of a system call, or both if nothing came
// between them.
type syscallEvent struct {
	call     string
	file     string // the file behind its descriptor
	text     string // what it writes, as far as strace prints it
	begins   bool
	ends     bool
	returned int64
}

var (
	traceLine = regexp.MustCompile(`^(\d+) +(?:(\w+)\((\d+)<([^>]*)>|<\.\.\. (\w+) resumed>)`)
	traceEnd  = regexp.MustCompile(`\) += (-?\d+)[^"]*$`)
)

// readTrace calls f with every event of a trace made with -f -y -xx, in order. strace
// stops a thread before and after a call, so if one event caused another, the cause
// comes first.
func readTrace(t *testing.T, file string, f func(syscallEvent)) {
	t.Helper()
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	begun := map[string]syscallEvent{} // by thread
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		m := traceLine.FindStringSubmatch(line)
		if m == nil {
			continue // a signal, the end of a thread
		}
		e := syscallEvent{call: m[2], file: string(unhex(m[4])), begins: true}
		if m[5] != "" {
			if e = begun[m[1]]; e.call != m[5] {
				t.Fatalf("the trace ends a call that did not begin: %.200s", line)
			}
			e.begins = false
		} else if _, rest, ok := strings.Cut(line, `"`); ok {
			e.text, _, _ = strings.Cut(rest, `"`)
		}
		if strings.HasSuffix(line, "<unfinished ...>") {
			begun[m[1]] = e
		} else if end := traceEnd.FindStringSubmatch(line[max(0, len(line)-100):]); end != nil {
			e.ends = true
			e.returned, _ = strconv.ParseInt(end[1], 10, 64)
		}
		f(e)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}

// content is what the call writes.
func (e syscallEvent) content() []byte { return unhex(e.text) }

// unhex reads what strace prints with -xx.
func unhex(text string) []byte {
	content, err := hex.DecodeString(strings.ReplaceAll(text, `\x`, ""))
	if err != nil {
		panic(fmt.Sprintf("%v in a trace: %.100q", err, text))
	}
	return content
}
