package main

import "runtime"

// Names of servers that variants of ours are compared with.
const (
	oneKey   = "one key"
	allCores = "all cores"
)

// compare compares the first server with the others under some workloads.
func (r *report) compare(names []string, suffix string, servers ...*server) {
	for _, name := range names {
		w := workloadNamed(name)
		w.title += suffix
		r.results = append(r.results, r.race(w, servers...)...)
	}
}

// measureOneCore compares our server on one core, as in a small container, with the
// same server on all cores. wrk runs on another core, so that it takes nothing from the
// measured one.
func (r *report) measureOneCore() {
	if runtime.NumCPU() < 2 {
		r.skipped = append(r.skipped, "one core is left out: wrk needs another")
		return
	}
	s, database := r.seededCopy("one-core", 1)
	s.name, s.wrkCPU = "ours, one core", "1"
	one := r.start(s, func(addr string) []string {
		return pinned("0", "env", "GOMAXPROCS=1", r.release, "serve", "--listen", addr, "--database", database)
	})
	defer one.stop()
	all := *r.running[0]
	all.name = allCores
	r.compare([]string{"first", "create128"}, ", on one core", one, &all)
}

// pinned is a command that runs another one on a single processor.
func pinned(cpu string, args ...string) []string {
	return append([]string{"taskset", "-c", cpu}, args...)
}
