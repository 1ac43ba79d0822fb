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

	wrkCPU     string // the processor that wrk runs on; "" for any
	rotateKeys bool   // send load with all its keys, sequentially
	peer       bool   // not our code: failed turns are repeated

	*process
	addr     string
	backends []*process // PostgreSQL and Redis, if it uses them; their CPU time counts as its own
}

// start starts a server that s describes, on a free port, and returns once it
// lists pets.
func (b *bench) start(s server, args func(addr string) []string) *server {
	s.addr = freeAddr()
	s.process = b.launch(s.name, syscall.SIGTERM, nil, args(s.addr)...)
	probe := s.api.list(page{limit: 20})
	b.await(s.process, func() { s.send(http.MethodGet, probe, "") })
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

// send sends one request. A response that isn't a success is an error.
func (s *server) send(method, uri, body string) *response {
	r := must(http.NewRequest(method, "http://"+s.addr+uri, strings.NewReader(body)))
	r.Header.Set("Authorization", "Bearer "+s.key)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "*/*")
	got := must(client.Do(r))
	defer got.Body.Close()
	content := must(io.ReadAll(got.Body))
	if got.StatusCode != http.StatusOK && got.StatusCode != http.StatusCreated {
		check(fmt.Errorf("%s: %s %s: %s, not a success: %s", s.name, method, uri, got.Status, content))
	}
	return &response{method, uri, got.StatusCode, got.Header, content}
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
