package e2e

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"animalstore/internal/testenv"
)

// injection is a disk fault. strace counts the calls of each thread separately, and the
// server's writes move between a few threads, so the nth call of a thread may be a much
// later call of the process.
type injection struct {
	calls   string
	errno   string
	nth     int
	lasting bool // every call from the nth on
	newFile bool // on a database that does not exist yet
}

func (f injection) String() string {
	text := fmt.Sprintf("%s %s %d", f.calls, f.errno, f.nth)
	if f.lasting {
		text += " and on"
	}
	if f.newFile {
		text += " of a new file"
	}
	return text
}

// when returns which calls fail, in strace's syntax.
func (f injection) when() string {
	if f.lasting {
		return fmt.Sprintf("%d+", f.nth)
	}
	return fmt.Sprint(f.nth)
}

// TestInjectedFaults makes a write system call fail. The server may stop or refuse
// requests, but everything it acknowledged, before or after the fault, must be stored
// when it is started again.
func TestInjectedFaults(t *testing.T) {
	t.Parallel()
	needsStrace(t)
	used := usedDatabase(t)
	var sum faultSummary
	t.Run("runs", func(t *testing.T) {
		for _, f := range injections() {
			t.Run(f.String(), func(t *testing.T) {
				t.Parallel()
				f.run(t, used, &sum)
			})
		}
	})
	t.Log(&sum)
	for _, calls := range []string{"fsync", "pwrite64", "ftruncate"} {
		if sum.injected[calls] == 0 {
			t.Errorf("no fault was injected into %s: the test checks nothing", calls)
		}
	}
	if sum.stopped == 0 || sum.refusals["storage_full"] == 0 {
		t.Errorf("want some servers to stop and some to respond with storage_full: %v", &sum)
	}
}

func injections() (all []injection) {
	add := func(f injection, nth ...int) {
		for _, f.nth = range nth {
			for _, f.errno = range []string{"EIO", "ENOSPC"} {
				all = append(all, f)
			}
		}
	}
	const sync, write, truncate = "fsync,fdatasync", "pwrite64", "ftruncate"
	if !testenv.Soak {
		add(injection{calls: sync}, 2, 20)
		add(injection{calls: sync, newFile: true}, 1)
		add(injection{calls: write}, 1, 100)
		add(injection{calls: write, lasting: true}, 80)
		add(injection{calls: write, newFile: true}, 20)
		add(injection{calls: truncate}, 1)
		return all
	}
	for n := range 100 {
		add(injection{calls: sync}, n+1)
		add(injection{calls: write}, n+1)
		// This call happens only once in a thousand pages. Four or more threads share
		// it, so this reaches the hundredth call of the process.
		if n < 25 {
			add(injection{calls: truncate}, n+1)
		}
		if n < 10 {
			add(injection{calls: write, lasting: true}, 10*n+1)
			// Creating a new file takes few calls.
			add(injection{calls: sync, newFile: true}, n+1)
			add(injection{calls: write, newFile: true}, 5*n+1)
		}
	}
	return all
}

// usedServer is a database whose server was killed, and the pets it acknowledged.
type usedServer struct {
	database string
	key      string
	pets     []pet
}

func usedDatabase(t *testing.T) usedServer {
	t.Helper()
	u := usedServer{database: newDatabase(t)}
	u.key = loadKey(t, u.database)
	s := start(t, onDatabase(u.database))
	l := startLoad(t, s, u.key, 8, "before", 1000)
	testenv.Eventually(t, "the database is in use", func() bool { return l.acknowledged.Load() > 400 })
	u.pets = l.stop()
	s.stop()
	// The next start finds a log to recover. It is short, so that most calls are those
	// of a working server.
	s = start(t, onDatabase(u.database))
	c := newClient(t, s, u.key)
	for n := range 3 {
		a := c.do(t, "POST", "/v1/pets", newPetBody(fmt.Sprint("last ", n), 1, "sold"))
		wantStatus(t, a, 201, "")
		p, err := decodePet(a.body)
		if err != nil {
			t.Fatal(err)
		}
		u.pets = append(u.pets, p)
	}
	s.kill()
	return u
}

// faultSummary summarizes the runs.
type faultSummary struct {
	mu           sync.Mutex
	runs         int
	injected     map[string]int // runs by call
	ordinals     map[string][]int
	stopped      int // servers that stopped because of the fault
	refused      int // servers that answered 503
	acknowledged int
	unanswered   int
	refusals     map[string]int // responses with 503 by code
}

func (f injection) run(t *testing.T, used usedServer, sum *faultSummary) {
	database, key := newDatabase(t), used.key
	acknowledged := newLedger()
	if !f.newFile {
		for _, suffix := range []string{"", "-wal"} {
			if err := copyFile(used.database+suffix, database+suffix); err != nil {
				t.Fatal(err)
			}
		}
		for _, p := range used.pets {
			acknowledged.add(p)
		}
	}
	trace := filepath.Join(t.TempDir(), "trace")
	s := launch(t, onDatabase(database), withStrace(trace, "-s", "0", "-e", "trace="+f.calls,
		"-e", fmt.Sprintf("inject=%s:error=%s:when=%s", f.calls, f.errno, f.when())))
	var l *load
	if s.awaitServing() {
		if f.newFile {
			key = loadKey(t, database)
		}
		l = startLoad(t, s, key, 8, "during", 4000)
		// After the fault, some more responses are counted. If the fault doesn't
		// happen, because the calls are spread over threads, the run is given up.
		enough := int64(math.MaxInt64)
		deadline := time.Now().Add(f.timeout())
		testenv.Eventually(t, "the load meets the fault", func() bool {
			responses := l.acknowledged.Load() + int64(l.refusals()["storage_full"])
			if enough == math.MaxInt64 && wasInjected(trace) {
				enough = responses + 100
			}
			return s.ended() || responses >= enough || time.Now().After(deadline)
		})
		for _, p := range l.stop() {
			if err := acknowledged.add(p); err != nil {
				t.Error(err)
			}
		}
	}
	stopped := s.ended()
	if stopped {
		if code, log := s.wait(), s.stderr.String(); code != 1 || l != nil && !strings.Contains(log, "storage failed") || strings.Contains(log, "goroutine ") {
			t.Errorf("the server ended with exit code %d, want 1 and a log line that storage failed.\n%s", code, s.output())
		}
	}
	s.kill()
	s.awaitTrace(trace)
	sum.add(f, countInjected(t, trace), stopped, l)

	if got := integrity(t, database); got != "ok" {
		t.Errorf("the file is damaged: %s", got)
	}
	s = start(t, onDatabase(database))
	if f.newFile && l == nil {
		key = loadKey(t, database)
	}
	c := newClient(t, s, key)
	if n, which := acknowledged.missing(c.allPets(t, 0), 0); n > 0 {
		t.Errorf("%d of %d acknowledged pets are lost or changed, such as %.300q", n, len(acknowledged.pets), which)
	}
	wantStatus(t, c.do(t, "POST", "/v1/pets", newPetBody("after", 1, "sold")), 201, "")
	s.stop()
	if got := integrity(t, database); got != "ok" {
		t.Errorf("the file is damaged after a restart: %s", got)
	}
}

// timeout is how long the load continues without meeting the fault.
func (f injection) timeout() time.Duration {
	switch {
	case f.newFile:
		return 3 * time.Second // most faults come while the file is made
	case testenv.Soak:
		return 40 * time.Second
	}
	return 15 * time.Second
}

var injectedCall = regexp.MustCompile(`(?m)^.*\(INJECTED\)$`)

func wasInjected(trace string) bool {
	text, err := os.ReadFile(trace)
	return err == nil && injectedCall.Match(text)
}

// countInjected returns the position of each failed call among all calls of the
// process.
func countInjected(t *testing.T, trace string) (ordinals []int) {
	t.Helper()
	text, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "<unfinished") || strings.Contains(line, "+++") || strings.Contains(line, "---") {
			continue
		}
		n++
		if injectedCall.MatchString(line) {
			ordinals = append(ordinals, n)
		}
	}
	return ordinals
}

func (s *faultSummary) add(f injection, ordinals []int, stopped bool, l *load) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.injected == nil {
		s.injected, s.ordinals, s.refusals = map[string]int{}, map[string][]int{}, map[string]int{}
	}
	call, _, _ := strings.Cut(f.calls, ",")
	s.runs++
	if len(ordinals) > 0 {
		s.injected[call]++
		s.ordinals[call] = append(s.ordinals[call], ordinals...)
	}
	if stopped {
		s.stopped++
	}
	if l == nil {
		return
	}
	s.acknowledged += int(l.acknowledged.Load())
	s.unanswered += int(l.unanswered.Load())
	if refusals := l.refusals(); len(refusals) > 0 {
		s.refused++
		for code, n := range refusals {
			s.refusals[code] += n
		}
	}
}

func (s *faultSummary) String() string {
	text := fmt.Sprintf("%d runs, faults injected in %v; %d servers stopped, %d answered 503 %v; %d pets acknowledged, %d requests without a response",
		s.runs, s.injected, s.stopped, s.refused, s.refusals, s.acknowledged, s.unanswered)
	for call, all := range s.ordinals {
		slices.Sort(all)
		all = slices.Compact(all)
		within := len(all)
		if i, _ := slices.BinarySearch(all, 101); i < within {
			within = i
		}
		text += fmt.Sprintf("; of the first 100 calls of %s in the process %d failed, the last one being number %d", call, within, all[len(all)-1])
	}
	return text
}
