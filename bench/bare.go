package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// serveBare is a server that a run starts by executing this program again. It sends
// responses captured from the real server and does nothing else: no credential, no
// limit, no database, not even a timeout. It is the fastest that net/http can send
// these responses. Its arguments are an address and the file of responses.
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
	check(http.ListenAndServe(args[0], handler))
}

// startBare captures our response to every read and to a create, starts the bare server
// with them, and checks that it sends the same responses.
func (b *bench) startBare(ours *server) *server {
	progress("capturing responses")
	checkCursors(ours)
	var all []string
	for _, requests := range []func(api, int) []string{firstPages, cursorPages, statusPages, singles} {
		all = append(all, requests(ourAPI, b.pets)...)
	}
	all = append(all, creates(ourAPI, b.pets)[0])
	var captured []*response
	for _, request := range all {
		fields := append(strings.SplitN(request, " ", 3), "")
		captured = append(captured, ours.send(fields[0], fields[1], fields[2]))
	}
	file := filepath.Join(b.work, "bare.json")
	check(os.WriteFile(file, must(json.Marshal(captured)), 0o600))
	s := server{name: "bare", api: ourAPI, key: ours.key, pets: ours.pets,
		about: "a net/http server that sends the same responses as ours and does nothing else"}
	bare := b.start(s, func(addr string) []string { return []string{must(os.Executable()), "bare", addr, file} })
	last := len(captured) - 1
	for _, want := range []*response{captured[0], captured[1], captured[last-1], captured[last]} {
		if got := bare.send(want.Method, want.URI, ""); got.differs(want) {
			check(fmt.Errorf("the bare server's response differs\n got %+v\nwant %+v", got, want))
		}
	}
	return bare
}
