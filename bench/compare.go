package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"animalstore"
)

// pet is what every server's pets have in common, apart from the id.
type pet struct {
	Name       string
	CategoryID int64 `json:"categoryId"`
	Status     animalstore.PetStatus
}

// checkReads compares the responses of two servers: comparing the speed of
// servers that do different work would be worthless.
func checkReads(ours, other *server) {
	n := int64(ours.pets)
	ids := []int64{n / 7, n / 3, n - 1}
	pages := []page{{limit: 20}, {limit: 100, status: animalstore.PetAvailable}}
	for _, below := range ids {
		pages = append(pages, page{below: below, limit: 20})
	}
	for _, p := range pages {
		got, want := other.list(p), ours.list(p)
		if !slices.Equal(got, want) || len(got) != p.limit {
			check(fmt.Errorf("%s lists different pets from ours for %+v\n got %v\nwant %v", other.name, p, got, want))
		}
	}
	for _, id := range ids {
		var got, want pet
		ours.decode(http.MethodGet, ours.api.get(id), "", &want)
		other.decode(http.MethodGet, other.api.get(id), "", &got)
		if got != want {
			check(fmt.Errorf("%s has a different pet %d: got %v, want %v", other.name, id, got, want))
		}
	}
}

// checkCreate creates a pet and expects it at the top of the list.
func (s *server) checkCreate() {
	var want, created pet
	check(json.Unmarshal([]byte(newPet), &want))
	s.decode(http.MethodPost, s.api.create, newPet, &created)
	if top := s.list(page{limit: 20})[0]; created != want || top != want {
		check(fmt.Errorf("%s: after a create got %v and %v at the top of the list, want %v", s.name, created, top, want))
	}
}

func (s *server) list(p page) (pets []pet) {
	body := json.RawMessage(s.send(http.MethodGet, s.api.list(p), "").Body)
	if s.api.items != "" {
		var fields map[string]json.RawMessage
		check(json.Unmarshal(body, &fields))
		body = fields[s.api.items]
	}
	check(json.Unmarshal(body, &pets))
	return pets
}

// checkCursors compares cursorURI with the server's own links.
func checkCursors(s *server) {
	for status, uri := range map[animalstore.PetStatus]string{"": "/v1/pets", rareStatus: "/v1/pets?status=" + string(rareStatus)} {
		got := s.send(http.MethodGet, uri, "")
		var pets []animalstore.Pet
		check(json.Unmarshal(got.Body, &pets))
		next := "<" + cursorURI(pets[len(pets)-1].ID, status) + `>; rel="next"`
		if link := got.Header.Get("Link"); !strings.Contains(link, next) {
			check(fmt.Errorf("the server's cursors have a different form: update cursorURI\n got %s\nwant %s", link, next))
		}
	}
}
