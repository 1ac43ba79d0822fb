package main

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"animalstore"
)

// stub serves animals from memory, as contestants written for this benchmark do.
func stub(t *testing.T, name string, a api, pets []animalstore.Pet) *entrant {
	below := func(cursor string) int64 {
		text, err := base64.RawURLEncoding.DecodeString(cursor)
		if err != nil {
			t.Error(err)
		}
		// Ours is path|position|filters, the plain one a position alone.
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
			if p.ID < before && len(list) < limit && (status == "" || status == string(p.Status)) {
				list = append(list, p)
			}
		}
		json.NewEncoder(w).Encode(list)
	})
	mux.HandleFunc("GET /v1/pets/{id}", func(w http.ResponseWriter, r *http.Request) {
		id, _ := strconv.ParseInt(r.PathValue("id"), 10, 64)
		json.NewEncoder(w).Encode(pets[slices.IndexFunc(pets, func(p animalstore.Pet) bool { return p.ID == id })])
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
	return &entrant{server: &server{process: &process{name: name}, addr: s.Listener.Addr().String()}, api: a}
}

// A contestant that does not do the same work is found out before the race.
func TestContestantsAreComparedWithOurs(t *testing.T) {
	const n = 400
	var pets []animalstore.Pet
	for a := range animals(n) {
		pets = append(pets, animalstore.Pet{ID: int64(len(pets)) + 1, Name: a.name, CategoryID: a.category, Status: a.status})
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
		{"another name on page one", changed(func(p []animalstore.Pet) { p[n-3].Name = "Nobody" }), "lists other animals"},
		{"another status deep down", changed(func(p []animalstore.Pet) { p[n/3-5].Status = "lost" }), "lists other animals"},
		{"another animal by id", changed(func(p []animalstore.Pet) { p[n-2].CategoryID = 99; p[n-2], p[n-1] = p[n-1], p[n-2] }), "other animals"},
		{"too few", pets[n-50:], "lists other animals"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := checkReads(ours, stub(t, "peer", plainAPI, c.pets), n)
			if (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	if err := stub(t, "peer", plainAPI, slices.Clone(pets)).checkCreate(); err != nil {
		t.Errorf("a create: %v", err)
	}
	// Its list does not show what was created: newest first, it comes last.
	forgetful := stub(t, "peer", plainAPI, slices.Clone(pets))
	forgetful.api.list = func(p page) string { p.below = n; return plainAPI.list(p) }
	if err := forgetful.checkCreate(); err == nil || !strings.Contains(err.Error(), "after a create") {
		t.Errorf("a create that does not show: got %v, want an error", err)
	}
}
