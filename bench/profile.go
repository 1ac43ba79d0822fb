package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	// releaseProfile is the profile that releases are compiled with.
	releaseProfile = "packaging/profile/animalstore.pgo"
	profileKeys    = 1000
	profileLength  = 12 * time.Second // of each workload
)

// profileWork is what most requests to a store are: pages and creates.
var profileWork = []string{"first", "cursor", "create16", "mix"}

// profile runs the server under each workload, with many keys, and writes what it spends
// its processor time on to releaseProfile.
func profile(r *report) {
	b := r.bench
	// Without the previous profile, so that the new one doesn't depend on it.
	files := b.collectProfiles(b.build("unprofiled", b.root, "off"))
	path := filepath.Join(b.root, releaseProfile)
	b.output("", slices.Concat([]string{"go", "tool", "pprof", "-proto", "-output", path}, files)...)
	progress("wrote %s, %d KB", path, must(os.Stat(path)).Size()/1024)
}

// collectProfiles profiles a build of the server under each workload, and returns the files.
func (b *bench) collectProfiles(bin string) (files []string) {
	raiseFileLimit()
	b.load = newGenerator(b.work)
	s, database := b.seededCopy("ours", b.amount(profileKeys))
	s.rotateKeys = true
	ops := freeAddr()
	ours := b.startBuild(s, bin, database, "--ops-listen", ops)
	for _, name := range profileWork {
		w := workloadNamed(name)
		progress("profiling: %s, %d connections", w.title, w.connections)
		files = append(files, b.profileUnder(w, ours, ops))
	}
	return files
}

// profileUnder profiles a server under a workload, and returns the profile's path.
func (b *bench) profileUnder(w workload, s *server, ops string) (path string) {
	requests := b.writeRequests(w, s)
	loaded := make(chan error, 1)
	go func() {
		_, err := b.load.turn(b.ctx, w, s, requests, b.burst+b.length(2*time.Second))
		loaded <- err
	}()
	seconds := max(1, int(b.burst.Seconds()))
	// Not client, whose timeout is for requests of the API.
	got := must(http.Get(fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", ops, seconds)))
	defer got.Body.Close()
	content := must(io.ReadAll(got.Body))
	if got.StatusCode != http.StatusOK {
		check(fmt.Errorf("profile: %s: %s", got.Status, content))
	}
	path = filepath.Join(b.work, w.name+".pprof")
	check(os.WriteFile(path, content, 0o600))
	check(<-loaded)
	return path
}
