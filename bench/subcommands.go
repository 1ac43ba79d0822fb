package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"animalstore/internal/db/sqlite"
	service "animalstore/internal/server"
)

// serveBare sends responses captured from the real server, and does nothing
// else: no credential, no limit, no database, not even a timeout. It is the most
// that net/http can do for these responses. Its arguments are an address, the file of
// responses and, for HTTPS, the directory of a certificate.
func serveBare(args []string) {
	var captured []*response
	check(json.Unmarshal(must(os.ReadFile(args[1])), &captured))
	reads := map[string]*response{}
	var created *response
	for _, r := range captured {
		r.Header.Del("Date")
		r.Header.Del("Connection")
		if r.Method == http.MethodPost {
			created = r
		} else {
			reads[r.URI] = r
		}
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		found := reads[r.RequestURI]
		if r.Method == http.MethodPost {
			io.Copy(io.Discard, r.Body)
			found = created
		}
		if found == nil {
			http.NotFound(w, r)
			return
		}
		header := w.Header()
		for name, values := range found.Header {
			header[name] = values
		}
		w.WriteHeader(found.Status)
		w.Write(found.Body)
	})
	if dir := args[2]; dir != "" {
		check(http.ListenAndServeTLS(args[0], filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), handler))
	}
	check(http.ListenAndServe(args[0], handler))
}

// startBare captures our response to every read and to a create, starts the bare
// server with them, and makes sure that it sends the same.
func (b *bench) startBare(name string, ours *server, reads ...[]string) *server {
	progress("capturing responses")
	checkCursors(ours)
	var captured []*response
	all := slices.Compact(slices.Sorted(slices.Values(slices.Concat(reads...))))
	for _, request := range append(all, creates(ourAPI, b.pets)...) {
		fields := append(strings.SplitN(request, " ", 3), "")
		captured = append(captured, ours.send(fields[0], fields[1], fields[2]))
	}
	file := filepath.Join(b.work, name+".json")
	check(os.WriteFile(file, must(json.Marshal(captured)), 0o600))
	bare := b.startSelf(server{name: name, api: ourAPI, key: ours.key, pets: ours.pets, tls: ours.tls,
		about: "a net/http server that sends the same responses as ours and does nothing else"}, "bare", file, ours.tls)
	last := len(captured) - 1
	for _, want := range []*response{captured[0], captured[1], captured[last-1], captured[last]} {
		if got := bare.send(want.Method, want.URI, ""); got.differs(want) {
			check(fmt.Errorf("the bare server's response differs\n got %+v\nwant %+v", got, want))
		}
	}
	return bare
}

const (
	oneByOne = "one-by-one"
	uncached = "uncached"
)

// variants are what the release build can't be told to do without.
var variants = map[string]service.Config{
	oneByOne: {Tuning: sqlite.Tuning{MaxBatch: 1}}, // each create is committed on its own
	uncached: {NoPageCache: true, Tuning: sqlite.Tuning{NoPetCache: true}},
}

// serveVariant runs the service without one of its optimizations. Its arguments
// are an address, the URL of a database and the name of a variant.
func serveVariant(args []string) {
	defer service.TuneMemory(false)() // as the serve command does
	config := variants[args[2]]
	config.Listen, config.Database = args[0], args[1]
	config.OpsListen = "127.0.0.1:0" // the release build keeps metrics, too
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	check(must(service.New(ctx, config)).Run(ctx))
}
