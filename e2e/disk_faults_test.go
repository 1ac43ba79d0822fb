package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"animalstore/internal/testenv"
)

// injection is a disk fault. strace counts the calls of each thread separately, so the
// nth call of a thread may be a much later call of the process.
type injection struct {
	calls   string
	errno   string
	when    string // which calls fail, in strace's syntax
	newFile bool   // on a database that does not exist yet
}

func (f injection) String() string {
	text := fmt.Sprintf("%s %s %s", f.calls, f.errno, f.when)
	if f.newFile {
		text += " of a new file"
	}
	return text
}

const syncCalls, writeCalls, truncateCalls = "fsync,fdatasync", "pwrite64", "ftruncate"

// TestInjectedFaults_Slow makes a write system call fail. The server may stop or refuse
// requests, but everything it acknowledged, before or after the fault, must be stored
// when it is started again.
func TestInjectedFaults_Slow(t *testing.T) {
	t.Parallel()
	needsStrace(t)
	used := newUsedDatabase(t)
	for _, f := range injections() {
		t.Run(f.String(), func(t *testing.T) {
			t.Parallel()
			f.run(t, used)
		})
	}
}

func injections() (all []injection) {
	if !testenv.Soak {
		return []injection{
			{calls: syncCalls, errno: "EIO", when: "2+"},
			{calls: writeCalls, errno: "ENOSPC", when: "40+"},
		}
	}
	for _, errno := range []string{"EIO", "ENOSPC"} {
		for n := range 100 {
			nth := fmt.Sprint(n + 1)
			all = append(all, injection{syncCalls, errno, nth, false}, injection{writeCalls, errno, nth, false})
			if n < 25 { // rare, and spread over the threads
				all = append(all, injection{truncateCalls, errno, nth, false})
			}
			if n < 10 {
				all = append(all, injection{writeCalls, errno, fmt.Sprint(10*n+1, "+"), false},
					injection{syncCalls, errno, nth, true}, injection{writeCalls, errno, fmt.Sprint(5*n + 1), true})
			}
		}
	}
	return all
}

// usedDatabase is a database whose server was killed, and the pets it acknowledged.
type usedDatabase struct {
	file string
	key  string
	pets []pet
}

func newUsedDatabase(t *testing.T) usedDatabase {
	t.Helper()
	u := usedDatabase{file: newDatabase(t)}
	u.key = adminKey(t, u.file)
	s := start(t, onDatabase(u.file))
	l := startLoad(t, s, u.key, 8, "before", 1000)
	testenv.Eventually(t, "the database is in use", func() bool { return l.acknowledged.Load() > 400 })
	u.pets = l.stop()
	s.kill()
	return u
}

func (f injection) run(t *testing.T, used usedDatabase) {
	database, key := newDatabase(t), used.key
	acknowledged := newLedger()
	if !f.newFile {
		for _, suffix := range []string{"", "-wal"} {
			copyInto(t, used.file+suffix, database+suffix)
		}
		for _, p := range used.pets {
			acknowledged.add(p)
		}
	}
	trace := filepath.Join(t.TempDir(), "trace")
	s := launch(t, onDatabase(database), withStrace(trace, "-s", "0", "-e", "trace="+f.calls,
		"-e", fmt.Sprintf("inject=%s:error=%s:when=%s", f.calls, f.errno, f.when)))
	served := s.awaitServing()
	if served {
		if f.newFile {
			key = adminKey(t, database)
		}
		for _, p := range f.loadUntilFault(t, s, key, trace) {
			if err := acknowledged.add(p); err != nil {
				t.Error(err)
			}
		}
	}
	if s.ended() {
		if code, log := s.wait(), s.stderr.String(); code != 1 || served && !strings.Contains(log, "storage failed") || strings.Contains(log, "goroutine ") {
			t.Errorf("the server ended with exit code %d, want 1 and a log line that storage failed.\n%s", code, s.output())
		}
	} else if f.errno == "EIO" && f.calls == syncCalls && wasInjected(trace) {
		t.Error("the server goes on after a failed fsync")
	}
	s.kill()

	if got := integrity(t, database); got != "ok" {
		t.Errorf("the file is damaged: %s", got)
	}
	s = start(t, onDatabase(database))
	if f.newFile && !served {
		key = adminKey(t, database)
	}
	c := newClient(t, s, key)
	if n, which := acknowledged.missing(c.allPets(t, 0), 0); n > 0 {
		t.Errorf("%d of %d acknowledged pets are lost or changed, such as %.300q", n, len(acknowledged.pets), which)
	}
	wantStatus(t, c.do(t, "POST", "/v1/pets", newPetBody("after", 1, "sold")), 201, "")
	s.stop()
}

// loadUntilFault adds pets until the server ends, or has given some more responses after
// the fault, and returns the acknowledged ones. In a soak, the fault may not happen,
// because calls are spread over threads.
func (f injection) loadUntilFault(t *testing.T, s *server, key, trace string) []pet {
	t.Helper()
	l := startLoad(t, s, key, 8, "during", 4000)
	responses := func() int64 { return l.acknowledged.Load() + int64(l.refusals()["storage_full"]) }
	begun := time.Now()
	testenv.Eventually(t, "the load meets the fault", func() bool {
		return s.ended() || wasInjected(trace) || testenv.Soak && time.Since(begun) > 10*time.Second
	})
	enough := responses() + 100
	testenv.Eventually(t, "some more responses", func() bool { return s.ended() || responses() >= enough })
	return l.stop()
}

var injectedCall = regexp.MustCompile(`(?m)^.*\(INJECTED\)$`)

func wasInjected(trace string) bool {
	text, err := os.ReadFile(trace)
	return err == nil && injectedCall.Match(text)
}
