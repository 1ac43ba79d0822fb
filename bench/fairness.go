package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	fairnessWork = "fairness"
	heavyKeys    = 4
	bursts       = 5
	burstLength  = 1500 * time.Millisecond
	// burstConnections is the number of connections of each key.
	burstConnections = 200
)

// largePet has one of the longest names that a pet can have.
var largePet = `{"name":"` + strings.Repeat("🦊", 1024) + `","categoryId":7,"status":"available"}`

// measureFairnesses measures our server on both databases.
func (r *report) measureFairnesses() {
	for _, s := range r.running {
		switch s.name {
		case "ours":
			r.costs = append(r.costs, r.measureFairness(onSQLite, s)...)
		case onPostgres:
			r.costs = append(r.costs, r.measureFairness(onPostgres, s)...)
		}
	}
}

// measureFairness measures how long one key waits for small reads while others request
// the largest pages, on connections that are never idle.
func (b *bench) measureFairness(engine string, s *server) (all []cost) {
	for range b.amount(100) {
		s.send(http.MethodPost, s.api.create, largePet)
	}
	keys := strings.Fields(string(must(os.ReadFile(s.keysFile))))[1:]
	for _, heavy := range []struct {
		keys int
		by   string
	}{{1, "one key"}, {heavyKeys, "four keys"}} {
		waits, pages := b.duringLargePages(s, keys[:heavy.keys])
		slices.Sort(waits)
		progress("fairness, %s: %s sent %.0f large pages a second to %s, and %d small reads", engine, s.name, pages, heavy.by, len(waits))
		limit := bar{}
		if s.name != "base" {
			limit = barFor(b.command, fairnessWork, "")
		}
		all = append(all, cost{fmt.Sprintf("small reads during large pages of %s, %s: p99 ms", heavy.by, engine), s.name, nil,
			[]float64{waits[len(waits)*99/100]}, limit})
	}
	return all
}

// duringLargePages returns how many ms the reads took during the bursts, and how many
// large pages were sent per second.
func (b *bench) duringLargePages(s *server, keys []string) (waits []float64, pages float64) {
	heavy := *s
	heavy.rotateKeys, heavy.keysFile = true, filepath.Join(b.work, "heavy.keys")
	check(os.WriteFile(heavy.keysFile, []byte(strings.Join(keys, "\n")+"\n"), 0o600))
	w := workload{"large", "large pages", len(keys) * burstConnections, func(api, int) []string { return []string{"GET /v1/pets?limit=100"} }}
	file := b.writeRequests(w, s)
	small := []string{"/v1/pets?limit=1", s.api.one(1)}
	length, times := b.length(burstLength), b.amount(bursts)
	for range times {
		waits = append(waits, whileRunning(func() {
			t, _, err := b.load.runWrk(b.ctx, w, &heavy, file, length)
			if !errors.As(err, &refusedError{}) && !errors.Is(err, errNothing) { // they request more than can be served in time
				check(err)
			}
			pages += float64(t.requests) / length.Seconds() / float64(times)
		}, func(n int) time.Duration {
			began := time.Now()
			if err := attempt(func() { s.send(http.MethodGet, small[n%len(small)], "") }); err != nil {
				progress("a small read failed: %v", err)
				return max(time.Since(began), 5*time.Second)
			}
			return time.Since(began)
		})...)
	}
	return waits, pages
}

// whileRunning sends requests, with short pauses, until load returns. request returns how
// long the nth one took, and whileRunning all of these in ms.
func whileRunning(load func(), request func(n int) time.Duration) (waits []float64) {
	ended := make(chan error, 1)
	go func() { ended <- attempt(load) }()
	for {
		waits = append(waits, float64(request(len(waits)).Microseconds())/1000)
		select {
		case err := <-ended:
			check(err)
			return waits
		case <-time.After(5 * time.Millisecond):
		}
	}
}
