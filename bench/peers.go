package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"
)

// manyKeys is the number of keys in our store.
const manyKeys = 10_000

// otherServers are the servers that ours can be compared with, other than the bare one.
// The results are useful even without one of them, so unavailable ones are left out
// with a message.
var otherServers = []struct {
	name  string
	start func(*bench) *server
}{
	{"postgres", startOnPostgres},
	{"pocketbase", pocketBase.start},
	{"fastify", fastify.start},
	{"axum", axum.start},
}

// extras are the parts of a run that aren't one workload for all servers.
var extras = []struct {
	name    string
	measure func(*report)
}{
	{"keys", (*report).measureKeys},
	{"onecore", (*report).measureOneCore},
	{"memory", (*report).measureMemory},
	{fairnessWork, (*report).measureFairnesses}, // leaves large pets
	{"growth", func(r *report) { r.measureGrowth(onSQLite, namesOf(growthWorkloads)) }},
}

// serverNames and workloadNames are the choices for flags.
func serverNames() []string {
	names := []string{"bare"}
	for _, p := range otherServers {
		names = append(names, p.name)
	}
	return names
}

func workloadNames() (names []string) {
	names = namesOf(workloads)
	for _, e := range extras {
		names = append(names, e.name)
	}
	return names
}

// peers compares the release build with a bare server and with possible alternatives,
// and writes the results.
func peers(r *report) {
	r.prepare()
	r.startAll()
	for _, w := range workloads {
		if slices.Contains(r.workloads, w.name) {
			r.results = append(r.results, r.race(w, r.running...)...)
		}
	}
	for _, e := range extras {
		if slices.Contains(r.workloads, e.name) {
			e.measure(r)
		}
	}
	r.write(r.tables())
}

// raiseFileLimit lets wrk and the servers have a thousand connections and more. Unless
// the limit is set, Go's children get the limit that Go was started with.
func raiseFileLimit() {
	var limit syscall.Rlimit
	check(syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	limit.Cur = limit.Max
	check(syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
}

// startAll starts ours and the servers to compare it with, and checks that they
// do the same work.
func (r *report) startAll() {
	s, database := r.seededCopy("ours", r.amount(manyKeys))
	s.about = "the release build with default flags, SQLite"
	ours := r.startBuild(s, r.release, database)
	r.running = []*server{ours}
	for _, other := range otherServers {
		if !slices.Contains(r.servers, other.name) {
			continue
		}
		err := attempt(func() {
			s := other.start(r.bench)
			checkReads(ours, s)
			r.running = append(r.running, s)
		})
		if errors.As(err, &unavailableError{}) {
			text := fmt.Sprintf("%s is left out: %v", other.name, err)
			progress("%s", text)
			line, _, _ := strings.Cut(text, "\n")
			r.skipped = append(r.skipped, line)
		} else {
			check(err)
		}
	}
	if slices.Contains(r.servers, "bare") { // before pets are created
		bare := r.startBare(ours)
		defer func() { r.running = slices.Insert(r.running, 1, bare) }()
	}
	for _, s := range r.running {
		s.checkCreate()
	}
}

// withManyKeys is our server with requests that use all its keys, one after another.
func (r *report) withManyKeys() *server {
	s := *r.running[0]
	s.name, s.rotateKeys = fmt.Sprintf("ours, %s keys", grouped(manyKeys)), true
	return &s
}

// measureKeys compares serving one key with serving many.
func (r *report) measureKeys() {
	one := *r.running[0]
	one.name = oneKey
	r.compare([]string{"first"}, ", ten thousand keys", r.withManyKeys(), &one)
}

// measureMemory measures our peak of memory after a load of reads and creates with many
// keys.
func (r *report) measureMemory() {
	ours, w := r.withManyKeys(), workloadNamed("mix")
	file := r.writeRequests(w, ours)
	for _, w.connections = range []int{connections, 128} {
		progress("memory under a mix with %d keys, %d connections", manyKeys, w.connections)
		must(r.load.turn(r.ctx, w, ours, file, r.length(3*time.Second)))
	}
	r.costs = append(r.costs, cost{"memory under load, peak: MiB", "", nil, []float64{ours.peakMemory()}, barFor("peers", "memory", "")})
}
