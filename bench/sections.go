package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Names of servers that variants of ours are compared with.
const (
	bareTLS    = "bare, TLS"
	oneKey     = "one key"
	unfollowed = "unfollowed"
	unhooked   = "unhooked"
)

// compare compares the first server with the others under some workloads.
func (r *report) compare(names []string, suffix string, servers ...*server) {
	for _, name := range names {
		w := workloadNamed(name)
		w.title += suffix
		r.results = append(r.results, r.race(w, servers...)...)
	}
}

// named are those of the running servers that have the given names.
func (r *report) named(names ...string) []*server {
	return slices.DeleteFunc(slices.Clone(r.running), func(s *server) bool { return !slices.Contains(names, s.name) })
}

// measureTLS compares our server with the bare one over HTTPS.
func (r *report) measureTLS() {
	r.output(r.work, "go", "run", filepath.Join(r.output("", "go", "env", "GOROOT"), "src/crypto/tls/generate_cert.go"), "-host", "127.0.0.1", "-ecdsa-curve", "P256")
	s, database := r.seededCopy("tls", 1)
	s.name, s.tls = "ours, TLS", r.work
	ours := r.startBuild(s, r.release, database, "--tls-cert", filepath.Join(s.tls, "cert.pem"), "--tls-key", filepath.Join(s.tls, "key.pem"))
	defer ours.stop()
	bare := r.startBare(bareTLS, ours, firstPages(ourAPI, r.pets), cursorPages(ourAPI, r.pets), gets(ourAPI, r.pets))
	defer bare.stop()
	r.compare([]string{"first", "cursor", "get"}, ", TLS 1.3", ours, bare)
}

// measureEvents compares creates while somebody follows their events, and while a webhook
// gets them, with creates that nobody is told of.
func (r *report) measureEvents() {
	works := []string{"create16", "create128"}
	alone := r.startCopy(unfollowed, r.release)
	defer alone.stop()
	followed := *alone
	followed.name, followed.during = "ours, followed", alone.follow
	r.compare(works, ", with a stream", &followed, alone)

	receiver := must(net.Listen("tcp", "127.0.0.1:0"))
	defer receiver.Close()
	go http.Serve(receiver, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	hooked := r.startCopy("hooked", r.release, "--webhook-networks", "127.0.0.0/8")
	defer hooked.stop()
	var webhook struct{ ID int64 }
	hooked.decode(http.MethodPost, "/v1/webhooks", fmt.Sprintf(`{"url":"http://%s/"}`, receiver.Addr()), &webhook)
	uri := fmt.Sprintf("/v1/webhooks/%d", webhook.ID)
	setState := func(state string) { hooked.send(http.MethodPatch, uri, `{"state":"`+state+`"}`) }
	setState("paused")
	hooked.during = func() func() {
		setState("active")
		return func() { setState("paused"); hooked.settle() } // or it would disturb the other's turn
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
	for before := time.Duration(-1); s.cpu() != before; time.Sleep(100 * time.Millisecond) {
		before = s.cpu()
	}
}

// measureHalfLoad compares the latency of ours and axum if both get half as many requests
// as the slower one can take.
func (r *report) measureHalfLoad() {
	pair := r.named("ours", "axum")
	if len(pair) < 2 {
		r.skipped = append(r.skipped, "half load is left out: there is no axum")
		return
	}
	short := *r.bench
	short.rounds = 1
	var all []result
	for _, name := range strings.Fields("first cursor get getmany zipf create16 mix") {
		w := workloadNamed(name)
		w.connections = connections
		peak := short.race(w, pair...)
		ours, axum := *pair[0], *pair[1]
		ours.rate = min(peak[0].turns[0].perSecond(), peak[1].turns[0].perSecond()) / 2
		axum.rate = ours.rate
		results := r.race(w, &ours, &axum)
		all = append(all, results...)
		add := func(figure string, of func(turn) float64) {
			r.latencies = append(r.latencies, cost{fmt.Sprintf("%s, %.0f/s: %s ms", w.title, ours.rate, figure), "axum",
				figures(results[1].turns, of), figures(results[0].turns, of), barFor("peers", "halfload", "axum")})
		}
		add("p50", turn.p50Millis)
		add("p99", turn.p99Millis)
	}
	r.more = append(r.more, resultTable("At half load, from when each request was due", all))
}
