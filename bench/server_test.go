package main

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"animalstore"

	sqlitedb "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// stub serves pets from memory, as the servers written for this benchmark do.
func stub(t *testing.T, name string, a api, pets []animalstore.Pet) *server {
	below := func(cursor string) int64 {
		text, err := base64.RawURLEncoding.DecodeString(cursor)
		if err != nil {
			t.Error(err)
		}
		// Our cursor is path|position|filters, the plain one only a position.
		fields := strings.Split(string(text), "|")
		position, err := strconv.ParseInt(fields[len(fields)/2], 10, 64)
		if err != nil {
			t.Error(err)
		}
		return position
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/pets", func(w http.ResponseWriter, r *http.Request) {
		limit, before, status := 20, int64(1<<62), r.FormValue("status")
		if r.FormValue("limit") != "" {
			limit, _ = strconv.Atoi(r.FormValue("limit"))
		}
		if r.FormValue("cursor") != "" {
			before = below(r.FormValue("cursor"))
		}
		list := []animalstore.Pet{}
		for _, p := range slices.Backward(pets) {
			if id := r.FormValue("id"); id != "" && id != strconv.FormatInt(p.ID, 10) {
				continue
			}
			if p.ID < before && len(list) < limit && (status == "" || status == string(p.Status)) {
				list = append(list, p)
			}
		}
		json.NewEncoder(w).Encode(list)
	})
	mux.HandleFunc("POST /v1/pets", func(w http.ResponseWriter, r *http.Request) {
		p := animalstore.Pet{ID: int64(len(pets)) + 1}
		if err := json.NewDecoder(r.Body).Decode(&p); err != nil {
			t.Error(err)
		}
		pets = append(pets, p)
		w.WriteHeader(http.StatusCreated)
		json.NewEncoder(w).Encode(p)
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return &server{name: name, api: a, pets: len(pets), addr: s.Listener.Addr().String()}
}

// A server that doesn't do the same work is detected before anything is measured.
func TestServersAreComparedWithOurs(t *testing.T) {
	const n = 400
	var pets []animalstore.Pet
	for part := range parts(n) {
		pets = append(pets, part.Pets...)
	}
	changed := func(change func(pets []animalstore.Pet)) []animalstore.Pet {
		copied := slices.Clone(pets)
		change(copied)
		return copied
	}
	ours := stub(t, "ours", ourAPI, pets)
	for _, c := range []struct {
		name string
		pets []animalstore.Pet
		want string // in the error
	}{
		{"the same", pets, ""},
		{"another name on page one", changed(func(p []animalstore.Pet) { p[n-3].Name = "Nobody" }), "lists different pets"},
		{"another status deep down", changed(func(p []animalstore.Pet) { p[n/3-5].Status = "lost" }), "lists different pets"},
		{"another pet by id", changed(func(p []animalstore.Pet) { p[n-2].CategoryID = 99; p[n-2], p[n-1] = p[n-1], p[n-2] }), "different pet"},
		{"too few", pets[n-50:], "lists different pets"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := attempt(func() { checkReads(ours, stub(t, "peer", plainAPI, c.pets)) })
			if (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	if err := attempt(stub(t, "peer", plainAPI, slices.Clone(pets)).checkCreate); err != nil {
		t.Errorf("a create: %v", err)
	}
	// Its list doesn't show the new pet.
	forgetful := stub(t, "peer", plainAPI, slices.Clone(pets))
	forgetful.api.list = func(p page) string { p.below = n; return plainAPI.list(p) }
	if err := attempt(forgetful.checkCreate); err == nil || !strings.Contains(err.Error(), "after a create") {
		t.Errorf("a create that isn't listed: got %v, want an error", err)
	}
	silent := stub(t, "peer", plainAPI, slices.Clone(pets))
	silent.file = filepath.Join(t.TempDir(), "peer.db")
	conn := must(sqlitedb.OpenConn(silent.file))
	check(sqlitex.ExecuteScript(conn, "CREATE TABLE events (id INTEGER)", nil))
	check(conn.Close())
	if err := attempt(silent.checkCreate); err == nil || !strings.Contains(err.Error(), "stored 0 events") {
		t.Errorf("a create without an event: got %v, want an error", err)
	}
}

// fakeWrk is a generator whose wrk prints one of the lines in each turn.
func fakeWrk(t *testing.T, lines ...string) *generator {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "lines"), []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\ncd " + dir + "\nhead -n1 lines >&2\nsed -i 1d lines\n"
	wrk := filepath.Join(dir, "wrk")
	if err := os.WriteFile(wrk, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return &generator{wrk: wrk}
}

// A long run isn't lost to a peer that is starved for a moment, but a failure of ours
// isn't ignored.
func TestTurnsAreRepeated(t *testing.T) {
	sleeper := testBench(t).launch("sleeper", os.Interrupt, nil, "sleep", "300")
	const good, failed, nothing = "done 10 1000000 0 0", "done 10 1000000 4 0", "done 0 1000000 0 0"
	for _, c := range []struct {
		name     string
		peer     bool
		lines    []string
		repeated int
		wantErr  string
	}{
		{"ours, good", false, []string{good}, 0, ""},
		{"ours, errors", false, []string{failed, good}, 0, "responses were errors"},
		{"ours, no response yet", false, []string{nothing, good}, 1, ""},
		{"a peer, errors", true, []string{failed, failed, good}, 2, ""},
		{"a peer, always", true, []string{failed, failed, failed, good}, 2, "responses were errors"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := fakeWrk(t, c.lines...)
			got, err := g.turn(t.Context(), workload{title: "list", connections: 1}, &server{process: sleeper, peer: c.peer}, "", time.Millisecond)
			switch {
			case c.wantErr != "" && (err == nil || !strings.Contains(err.Error(), c.wantErr)):
				t.Errorf("got %v, want an error with %q", err, c.wantErr)
			case c.wantErr == "" && (err != nil || got.requests != 10):
				t.Errorf("got %d requests, %v; want 10", got.requests, err)
			}
			if len(g.repeated) != c.repeated {
				t.Errorf("got %q repeated, want %d", g.repeated, c.repeated)
			}
		})
	}
}
