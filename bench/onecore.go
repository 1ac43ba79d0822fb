package main

import "runtime"

// allCores is the name of our server without restrictions, where it is compared with
// itself on one core.
const allCores = "all cores"

// pinned is a command that runs another one on a single processor.
func pinned(cpu string, args ...string) []string {
	return append([]string{"taskset", "-c", cpu}, args...)
}

// measureOneCore compares our server on one core, as in a small container, with the
// same on all of them. Meanwhile wrk is on another core, so that it takes nothing from
// the one that is measured.
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
	all := *r.running[0]
	all.name = allCores
	for _, name := range []string{"first", "get", "create1", "create128"} {
		w := workloadNamed(name)
		w.title += ", on one core"
		r.results = append(r.results, r.race(w, one, &all)...)
	}
	one.stop()
}
