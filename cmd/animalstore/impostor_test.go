package main

import (
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"

	"github.com/rogpeppe/go-internal/testscript"
)

// impostors respond in place of the service. n counts their requests from 1.
var impostors = map[string]func(w http.ResponseWriter, r *http.Request, n int64){
	// another program's page
	"page": func(w http.ResponseWriter, _ *http.Request, _ int64) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<html>\x1b[31mWelcome to nginx!</html>")
	},
	// a proxy whose server is gone
	"proxy": func(w http.ResponseWriter, _ *http.Request, _ int64) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusBadGateway)
		fmt.Fprint(w, "<html>502 Bad Gateway</html>")
	},
	"redirect": func(w http.ResponseWriter, r *http.Request, _ int64) {
		http.Redirect(w, r, "https://elsewhere.example/", http.StatusMovedPermanently)
	},
	// the service, with a limit that ends after a second
	"limited": func(w http.ResponseWriter, r *http.Request, n int64) {
		const pet = `{"id":1,"name":"Rex","categoryId":7,"status":"available"}`
		w.Header().Set("Content-Type", "application/json")
		switch {
		case n == 1:
			refuse(w, http.StatusTooManyRequests, 1, `{"code":"rate_limit_exceeded","message":"wait a little","status":429}`)
		case r.Method == http.MethodPost:
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, pet)
		default:
			fmt.Fprint(w, "["+pet+"]")
		}
	},
	// the service, with a limit that lasts an hour
	"exhausted": func(w http.ResponseWriter, _ *http.Request, _ int64) {
		refuse(w, http.StatusTooManyRequests, 3600, `{"code":"daily_quota_exceeded","message":"come back tomorrow","status":429}`)
	},
	// the service with a full disk
	"broken": func(w http.ResponseWriter, _ *http.Request, _ int64) {
		w.Header().Set("X-Request-Id", "req-4711")
		refuse(w, http.StatusServiceUnavailable, 1, `{"code":"storage_full","message":"the disk is full","status":503}`)
	},
	// the service, which always runs out of time
	"unfinished": func(w http.ResponseWriter, _ *http.Request, _ int64) {
		refuse(w, http.StatusServiceUnavailable, 1, `{"code":"unavailable","message":"500 deliveries are due, but not yet all","status":503}`)
	},
	// the service behind a network that loses every response
	"lost": func(http.ResponseWriter, *http.Request, int64) {
		panic(http.ErrAbortHandler)
	},
}

func refuse(w http.ResponseWriter, status, seconds int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Retry-After", fmt.Sprint(seconds))
	w.WriteHeader(status)
	fmt.Fprint(w, body)
}

// newImpostor starts one of [impostors]; "tls" is "page" over HTTPS.
func newImpostor(kind string) (*httptest.Server, error) {
	name := kind
	if kind == "tls" {
		name = "page"
	}
	respond, known := impostors[name]
	if !known {
		return nil, fmt.Errorf("there is no impostor %q", kind)
	}
	var n atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { respond(w, r, n.Add(1)) }))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	if kind == "tls" {
		s.StartTLS()
	} else {
		s.Start()
	}
	return s, nil
}

// impostor starts an impostor for a script. The certificate of "tls" is in cert.pem.
func impostor(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: impostor KIND")
	}
	s, err := newImpostor(args[0])
	ts.Check(err)
	ts.Defer(s.Close)
	if s.TLS != nil {
		cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
		ts.Check(os.WriteFile(ts.MkAbs("cert.pem"), cert, 0o666))
	}
	pointTo(ts, s.URL)
}
