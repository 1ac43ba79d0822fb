package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"animalstore"
)

// page is which animals to list, newest first.
type page struct {
	below  int64 // an id, or 0 for the first page
	limit  int
	status animalstore.PetStatus // or "" for all
}

// api is how a contestant is asked for animals. Each asks for the same, in its
// own words.
type api struct {
	list   func(page) string // a request target
	get    func(id int64) string
	create string
	items  func(answer []byte) (json.RawMessage, error) // the animals in a list
}

var ourAPI = api{
	list: func(p page) string {
		switch {
		case p.below > 0 && p.limit == 20:
			return cursorURI(p.below, p.status)
		case p.below > 0:
			return cursorURI(p.below, p.status) + "&limit=" + strconv.Itoa(p.limit)
		case p.limit == 20 && p.status == "":
			return firstPage
		}
		return firstPage + "?" + listQuery(p)
	},
	get:    func(id int64) string { return "/v1/pets/" + strconv.FormatInt(id, 10) },
	create: "/v1/pets",
	items:  func(answer []byte) (json.RawMessage, error) { return answer, nil },
}

func listQuery(p page) string {
	query := "limit=" + strconv.Itoa(p.limit)
	if p.status != "" {
		query += "&status=" + string(p.status)
	}
	return query
}

// plainAPI is that of contestants written for this benchmark.
var plainAPI = api{
	list: func(p page) string {
		query := listQuery(p)
		if p.below > 0 {
			query += "&cursor=" + base64.RawURLEncoding.EncodeToString(strconv.AppendInt(nil, p.below, 10))
		}
		return "/v1/pets?" + query
	},
	get:    ourAPI.get,
	create: ourAPI.create,
	items:  ourAPI.items,
}

// pocketBaseAPI is its records API. Its ids are random, so a place in a list is
// a moment of creation. Its answers hold the collection's name and id, and the
// time, besides our fields: to ask for fewer of them costs it twice the time.
var pocketBaseAPI = api{
	list: func(p page) string {
		query := fmt.Sprintf("perPage=%d&skipTotal=1&sort=-created", p.limit)
		var filters []string
		if p.status != "" {
			filters = append(filters, fmt.Sprintf(`status="%s"`, p.status))
		}
		if p.below > 0 {
			created := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(p.below) * time.Millisecond)
			filters = append(filters, fmt.Sprintf(`created<"%s"`, created.Format("2006-01-02 15:04:05.000Z")))
		}
		if len(filters) > 0 {
			query += "&filter=" + url.QueryEscape(strings.Join(filters, "&&"))
		}
		return "/api/collections/pets/records?" + query
	},
	get:    func(id int64) string { return fmt.Sprintf("/api/collections/pets/records/pet%012d", id) },
	create: "/api/collections/pets/records",
	items: func(answer []byte) (json.RawMessage, error) {
		var list struct{ Items json.RawMessage }
		err := json.Unmarshal(answer, &list)
		return list.Items, err
	},
}

// shown is what every contestant tells of an animal, beside an id.
type shown struct {
	Name       string
	CategoryID int64 `json:"categoryId"`
	Status     animalstore.PetStatus
}

// checkReads compares what two contestants answer: a race between servers that
// do different work would be worth nothing.
func checkReads(ours, other *entrant, n int) error {
	places := []int64{int64(n) / 7, int64(n) / 3, int64(n) - 1}
	pages := []page{{limit: 20}, {limit: 100, status: animalstore.PetAvailable}}
	for _, below := range places {
		pages = append(pages, page{below: below, limit: 20})
	}
	for _, p := range pages {
		want, err := ours.page(p)
		if err != nil {
			return err
		}
		got, err := other.page(p)
		if err != nil {
			return err
		}
		if !slices.Equal(got, want) || len(got) != p.limit {
			return fmt.Errorf("%s lists other animals than ours for %+v\n got %v\nwant %v", other.name, p, got, want)
		}
	}
	for _, id := range places {
		var got, want shown
		if err := ours.one("GET", ours.api.get(id), "", &want); err != nil {
			return err
		}
		if err := other.one("GET", other.api.get(id), "", &got); err != nil {
			return err
		}
		if got != want {
			return fmt.Errorf("%s has another animal %d: got %v, want %v", other.name, id, got, want)
		}
	}
	return nil
}

// checkCreate adds an animal and expects it at the head of the list.
func (e *entrant) checkCreate() error {
	var want, created shown
	if err := json.Unmarshal([]byte(newPet), &want); err != nil {
		return err
	}
	if err := e.one("POST", e.api.create, newPet, &created); err != nil {
		return err
	}
	list, err := e.page(page{limit: 20})
	if err != nil {
		return err
	}
	if created != want || list[0] != want {
		return fmt.Errorf("%s: after a create got %v and %v at the head of the list, want %v", e.name, created, list[0], want)
	}
	return nil
}

func (e *entrant) page(p page) (animals []shown, err error) {
	var items json.RawMessage
	if err := e.one("GET", e.api.list(p), "", &items); err != nil {
		return nil, err
	}
	if items, err = e.api.items(items); err != nil {
		return nil, err
	}
	return animals, json.Unmarshal(items, &animals)
}

// one asks once and decodes the answer.
func (e *entrant) one(method, uri, body string, into any) error {
	status, answer, err := e.fetch(method, uri, body)
	if err != nil {
		return err
	}
	if status != 200 && status != 201 {
		return fmt.Errorf("%s: %s %s: %d, not a success: %s", e.name, method, uri, status, answer)
	}
	return json.Unmarshal(answer, into)
}

// cursorURI is a page of the list that starts below an id, as the server itself
// would link to it. Walking to a random place would take hours.
func cursorURI(below int64, status animalstore.PetStatus) string {
	filters := ""
	if status != "" {
		filters = "status=" + string(status)
	}
	uri := "/v1/pets?cursor=" + base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "/v1/pets|%d|%s", below, filters))
	if filters != "" {
		uri += "&" + filters
	}
	return uri
}

// checkCursors compares cursorURI with what the server links to.
func checkCursors(s *server) error {
	for _, status := range []animalstore.PetStatus{"", rare} {
		uri := "/v1/pets"
		if status != "" {
			uri += "?status=" + string(status)
		}
		a, err := s.ask("GET", uri, "")
		if err != nil {
			return err
		}
		var pets []animalstore.Pet
		if err := json.Unmarshal([]byte(a.Body), &pets); err != nil || len(pets) == 0 {
			return fmt.Errorf("%s: no animals in %q (%v)", a, a.Body, err)
		}
		next := "<" + cursorURI(pets[len(pets)-1].ID, status) + `>; rel="next"`
		if !strings.Contains(a.field("Link"), next) {
			return fmt.Errorf("cursors have another form than this benchmark makes: bring cursorURI up to date\n got %s\nwant %s", a.field("Link"), next)
		}
	}
	return nil
}
