package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"time"
)

// Names of servers that variants of ours are compared with.
const (
	oneKey     = "one key"
	allCores   = "all cores"
	unfollowed = "unfollowed"
	unhooked   = "unhooked"
	uncounted  = "uncounted"
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

// measureEvents compares creates while somebody follows their events, and while a
// webhook receives them, with creates without followers.
func (r *report) measureEvents() {
	works := []string{"create16", "create128"}
	start := func(name string, flags ...string) *server {
		s, database := r.seededCopy(name, 1)
		return r.startBuild(s, r.release, database, flags...)
	}
	alone := start(unfollowed)
	defer alone.stop()
	followed := *alone
	followed.name, followed.during = "ours, followed", alone.follow
	r.compare(works, ", with a stream", &followed, alone)

	receiver := must(net.Listen("tcp", "127.0.0.1:0"))
	defer receiver.Close()
	go http.Serve(receiver, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	hooked := start("hooked", "--webhook-networks", "127.0.0.0/8")
	defer hooked.stop()
	var webhook struct{ ID int64 }
	hooked.decode(http.MethodPost, "/v1/webhooks", fmt.Sprintf(`{"url":"http://%s/"}`, receiver.Addr()), &webhook)
	uri := fmt.Sprintf("/v1/webhooks/%d", webhook.ID)
	setState := func(state string) { hooked.send(http.MethodPatch, uri, `{"state":"`+state+`"}`) }
	setState("paused")
	hooked.during = func() func() {
		setState("active")
		return func() { setState("paused"); hooked.settle() } // otherwise it would disturb the other's turn
	}
	alone.name = unhooked
	r.compare(works, ", with a webhook", hooked, alone)
	var backlog []json.RawMessage
	if hooked.decode(http.MethodGet, uri+"/deliveries?state=pending", "", &backlog); len(backlog) < 20 {
		check(errors.New("the webhook keeps up with the creates: a backlog was to be measured"))
	}
}

// follow reads the stream of events until it is stopped.
func (s *server) follow() (stop func()) {
	stream := s.open(http.MethodGet, "/v1/events?after=latest", "", "text/event-stream")
	read := make(chan int64)
	go func() {
		n, _ := io.Copy(io.Discard, stream.Body)
		read <- n
	}()
	return func() {
		s.settle() // with the rest of the events
		stream.Body.Close()
		if <-read == 0 {
			check(errors.New("the stream had no event"))
		}
	}
}

// settle waits until the server is idle.
func (s *server) settle() {
	for before := time.Duration(-1); s.process.cpu() != before; time.Sleep(100 * time.Millisecond) {
		before = s.process.cpu()
	}
}
