package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"animalstore/internal/db/postgres/pgtest"
	"animalstore/internal/ratelimit/redistest"

	"github.com/jackc/pgx/v5"
)

// cpu returns the processor time that the threads of a process have used, to the
// nanosecond: /proc/PID/stat counts in hundredths of a second, too coarse for a few
// thousand requests.
func cpu(t testing.TB, pid int) (used time.Duration) {
	t.Helper()
	if _, err := os.Stat("/proc/self/schedstat"); err != nil {
		skip(t, "this machine doesn't report processor time: %v", err)
	}
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	for _, thread := range threads {
		text, err := os.ReadFile(thread)
		if err != nil {
			continue // it ended
		}
		ran, _, _ := strings.Cut(string(text), " ")
		n, err := strconv.ParseInt(ran, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v in %q", thread, err, text)
		}
		used += time.Duration(n)
	}
	return used
}

// inDirectory are the processes that work in a directory, as those of a
// PostgreSQL server do in that of its data.
func inDirectory(dir string) (pids []int) {
	all, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range all {
		if to, err := os.Readlink(link); err == nil && to == dir {
			pid, _ := strconv.Atoi(strings.Split(link, "/")[2])
			pids = append(pids, pid)
		}
	}
	return pids
}

// TestCostOfARequest measures what docs/scaling.md reckons with: the processor
// time a request costs in each part.
func TestCostOfARequest(t *testing.T) {
	if !soak {
		t.Skip("measures and checks nothing: set ANIMALSTORE_SOAK=1")
	}
	postgres := pgtest.Start(t)
	redis := redistest.Start(t)
	var table strings.Builder
	fmt.Fprintf(&table, "%-24s %-10s %10s %10s %10s\n", "microseconds a request", "", "server", "Redis", "PostgreSQL")
	for _, c := range []struct {
		name            string
		postgres, redis bool
	}{{"SQLite, memory", false, false}, {"PostgreSQL, memory", true, false}, {"PostgreSQL, Redis", true, true}} {
		var args []string
		database, dataDir := "", ""
		if c.postgres {
			database = postgres.NewDatabase(t, "")
			args = append(args, "--database", database)
			conn, err := pgx.Connect(t.Context(), database)
			if err != nil {
				t.Fatal(err)
			}
			if err := conn.QueryRow(t.Context(), "SHOW data_directory").Scan(&dataDir); err != nil {
				t.Fatal(err)
			}
			conn.Close(t.Context())
		}
		if c.redis {
			args = append(args, "--redis", redis.URL())
		}
		s := start(t, withArgs(args...))
		if !c.postgres {
			database = "sqlite:" + s.database
		}
		made := run(t, "keys", "create", "--database", database, "--name", "load", "--plan", "enterprise", "--per-minute", "1000000000", "--per-day", "1000000000")
		key := strings.TrimSpace(made.stdout)
		for _, r := range []struct {
			name, method, path, body string
			count                    int64
			status                   int
		}{
			{"create", "POST", "/v1/pets", newPetBody("Rex", 1, "available"), 4_000, 201},
			{"list of 20", "GET", "/v1/pets", "", 20_000, 200},
		} {
			send(t, s, key, r.method, r.path, r.body, r.count/10, r.status) // warm
			used := func() (server, redisUsed, postgresUsed time.Duration) {
				for _, pid := range inDirectory(dataDir) {
					postgresUsed += cpu(t, pid)
				}
				return cpu(t, s.cmd.Process.Pid), cpu(t, redis.Pid()), postgresUsed
			}
			s0, r0, p0 := used()
			send(t, s, key, r.method, r.path, r.body, r.count, r.status)
			s1, r1, p1 := used()
			per := func(d time.Duration) float64 { return float64(d.Microseconds()) / float64(r.count) }
			fmt.Fprintf(&table, "%-24s %-10s %10.0f %10.0f %10.0f\n", c.name, r.name, per(s1-s0), per(r1-r0), per(p1-p0))
		}
		s.stop()
	}
	t.Logf("%s", table.String())
}

// send has 16 clients make requests and checks each response.
func send(t testing.TB, s *server, key, method, path, body string, count int64, status int) {
	t.Helper()
	var sent atomic.Int64
	var wg sync.WaitGroup
	for range 16 {
		c := newClient(t, s, key)
		wg.Go(func() {
			for sent.Add(1) <= count {
				if a, err := c.try(method, path, body); err != nil || a.status != status {
					t.Errorf("%s %s: got %d %s %v, want %d", method, path, a.status, a.body, err, status)
					return
				}
			}
		})
	}
	wg.Wait()
}
