package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"
)

// server is a running server to measure.
type server struct {
	name     string
	api      api
	key      string
	keysFile string // all its keys
	pets     int    // in its store when it started
	about    string // versions and settings, for the report
	file     string // its SQLite database, if it has one

	during     func() (stop func()) // runs during its turns besides the load; may be nil
	wrkCPU     string               // the processor that wrk runs on; "" for any
	rotateKeys bool                 // send load with all its keys, one after another
	peer       bool                 // not our code: failed turns are repeated

	*process
	addr     string
	startup  time.Duration // from its start to its first response
	backends []*process    // PostgreSQL and Redis, if it uses them; their CPU time counts as its own
}

// start starts a server that s describes, on a free port, and returns once it
// lists pets.
func (b *bench) start(s server, args func(addr string) []string) *server {
	s.addr = freeAddr()
	started := time.Now()
	s.process = b.launch(s.name, syscall.SIGTERM, nil, args(s.addr)...)
	probe := s.api.list(page{limit: 20})
	b.await(s.process, func() { s.send(http.MethodGet, probe, "") })
	s.startup = time.Since(started)
	return &s
}

// startBuild starts a build of the service with default flags, and some more.
func (b *bench) startBuild(s server, bin, database string, flags ...string) *server {
	return b.start(s, func(addr string) []string {
		return append([]string{bin, "serve", "--listen", addr, "--database", database}, flags...)
	})
}

// cpu is the processor time of the server and its backends so far, and that of each
// backend.
func (s *server) cpu() (all time.Duration, backends []time.Duration) {
	all = s.process.cpu()
	for _, p := range s.backends {
		backends = append(backends, p.cpu())
		all += backends[len(backends)-1]
	}
	return all, backends
}

// response is what a server sent back. It is kept in files for the bare server.
type response struct {
	Method, URI string // of the request
	Status      int
	Header      http.Header
	Body        []byte
}

// differs reports whether two responses differ, apart from when they were sent.
func (r *response) differs(other *response) bool {
	fixed := func(h http.Header) string {
		h = h.Clone()
		h.Del("Date")
		h.Del("X-Request-Id")
		var text strings.Builder
		h.Write(&text) // sorted
		return text.String()
	}
	return r.Status != other.Status || !bytes.Equal(r.Body, other.Body) || fixed(r.Header) != fixed(other.Header)
}

var client = &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableCompression: true}}

// open sends one request and leaves the response's body to be read. A response that
// isn't a success is an error.
func (s *server) open(method, uri, body, accept string) *http.Response {
	r := must(http.NewRequest(method, "http://"+s.addr+uri, strings.NewReader(body)))
	r.Header.Set("Authorization", "Bearer "+s.key)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", accept)
	got := must(client.Do(r))
	if got.StatusCode != http.StatusOK && got.StatusCode != http.StatusCreated {
		defer got.Body.Close()
		check(fmt.Errorf("%s: %s %s: %s, not a success: %s", s.name, method, uri, got.Status, must(io.ReadAll(got.Body))))
	}
	return got
}

// send sends one request.
func (s *server) send(method, uri, body string) *response {
	got := s.open(method, uri, body, "*/*")
	defer got.Body.Close()
	return &response{method, uri, got.StatusCode, got.Header, must(io.ReadAll(got.Body))}
}

// decode sends one request and decodes the response's body.
func (s *server) decode(method, uri, body string, into any) {
	check(json.Unmarshal(s.send(method, uri, body).Body, into))
}

func freeAddr() string {
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	defer l.Close()
	return l.Addr().String()
}
