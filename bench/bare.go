package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
)

// serveBare answers with what was captured from the real server, and does
// nothing else: no credential, no limit, no database, not even a timeout. It is
// the most that net/http can do for these answers.
func serveBare(addr, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var captured []answer
	if err := json.Unmarshal(text, &captured); err != nil {
		return err
	}
	type ready struct {
		header map[string][]string
		status int
		body   []byte
	}
	reads := map[string]*ready{}
	var write *ready
	for _, a := range captured {
		p := &ready{map[string][]string{}, a.Status, []byte(a.Body)}
		for _, f := range a.Fields {
			if f[0] != "Date" && f[0] != "Connection" {
				p.header[f[0]] = append(p.header[f[0]], f[1])
			}
		}
		if a.Method == http.MethodPost {
			write = p
		} else {
			reads[a.URI] = p
		}
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	return http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := reads[r.RequestURI]
		if r.Method == http.MethodPost {
			io.Copy(io.Discard, r.Body)
			p = write
		}
		if p == nil {
			http.NotFound(w, r)
			return
		}
		h := w.Header()
		for name, values := range p.header {
			h[name] = values
		}
		w.WriteHeader(p.status)
		w.Write(p.body)
	}))
}

// startBare captures what ours answers to every read, and a create that goes to
// another server where ours has to stay as it was seeded. It starts the bare
// server with that and makes sure that it answers the same.
func startBare(ctx context.Context, work string, ours, other *server, reads []string) (*server, error) {
	say("capturing answers")
	if err := checkCursors(ours); err != nil {
		return nil, err
	}
	c, err := ours.dial()
	if err != nil {
		return nil, err
	}
	defer c.close()
	var captured []*answer
	for _, request := range reads {
		a, err := c.do("GET", request[len("GET "):], "")
		if err != nil {
			return nil, err
		}
		if a.Status != 200 {
			return nil, fmt.Errorf("%s, not 200: %s", a, a.Body)
		}
		captured = append(captured, a)
	}
	created, err := other.ask("POST", "/v1/pets", newPet)
	if err != nil {
		return nil, err
	}
	if created.Status != 201 {
		return nil, fmt.Errorf("%s, not 201: %s", created, created.Body)
	}
	captured = append(captured, created)
	text, err := json.Marshal(captured)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(work, "answers.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	bare, err := start(ctx, work, "bare", ours.key, firstPage, func(addr string) []string {
		return []string{self, "bare", addr, file}
	})
	if err != nil {
		return nil, err
	}
	for _, want := range []*answer{captured[0], captured[1], captured[len(captured)-2], created} {
		body := ""
		if want.Method == "POST" {
			body = newPet
		}
		got, err := bare.ask(want.Method, want.URI, body)
		if err == nil && !got.same(want) {
			err = fmt.Errorf("the bare server answers differently\n got %s %q %q\nwant %s %q %q", got, got.Fields, got.Body, want, want.Fields, want.Body)
		}
		if err != nil {
			bare.stop()
			return nil, err
		}
	}
	return bare, nil
}
