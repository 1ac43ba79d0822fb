package main

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
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
