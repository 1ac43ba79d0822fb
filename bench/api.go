package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"animalstore"
	"animalstore/internal/db"

	sqlitedb "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// page says which pets to list, newest first.
type page struct {
	below  int64 // an id, or 0 for the first page
	limit  int
	status animalstore.PetStatus // or "" for all
}

// api is the format of a server's requests. The requests are equivalent for all
// servers.
type api struct {
	list   func(page) string     // a request target
	one    func(id int64) string // a list of one pet, or with items the pet itself
	create string
	items  string // the field of a list response with the pets, or "" if it is the whole body
}

var ourAPI = api{
	list: func(p page) string {
		switch {
		case p.below > 0: // always with the default limit
			return cursorURI(p.below, p.status)
		case p.limit == 20 && p.status == "":
			return "/v1/pets"
		}
		return "/v1/pets?" + listQuery(p)
	},
	one:    func(id int64) string { return "/v1/pets?id=" + strconv.FormatInt(id, 10) },
	create: "/v1/pets",
}

func listQuery(p page) string {
	query := "limit=" + strconv.Itoa(p.limit)
	if p.status != "" {
		query += "&status=" + string(p.status)
	}
	return query
}

// peerAPI is the API of the servers written for this benchmark.
var peerAPI = api{
	list: func(p page) string {
		query := listQuery(p)
		if p.below > 0 {
			query += "&cursor=" + base64.RawURLEncoding.EncodeToString(strconv.AppendInt(nil, p.below, 10))
		}
		return "/v1/pets?" + query
	},
	one:    ourAPI.one,
	create: ourAPI.create,
}

// pocketBaseAPI is PocketBase's records API. Its ids are random, so a position in a
// list is a creation time. Its responses contain the collection's name and id, and the
// time, in addition to our fields: requesting fewer of them takes twice the time.
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
	one:    func(id int64) string { return fmt.Sprintf("/api/collections/pets/records/pet%012d", id) },
	create: "/api/collections/pets/records",
	items:  "items",
}

// cursorURI is a page of the list that starts below an id, as in the server's links.
// Following links to a random place would take hours.
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

// nameURI is cursorURI for a list by name, which starts after the pet with this id and name:
// at the first entry of the name that the list has.
func nameURI(after int64, name string, filters url.Values) string {
	entries := db.NameEntries(name)
	i := slices.IndexFunc(entries, func(e db.NameEntry) bool { return strings.HasPrefix(e.Text, db.FoldName(filters.Get("name"))) })
	cursor := fmt.Appendf(nil, "/v1/pets|%d|%s|%s", after, filters.Encode(), entries[i].Text)
	return "/v1/pets?cursor=" + base64.RawURLEncoding.EncodeToString(cursor) + "&" + filters.Encode()
}

// pet has the fields that all servers' pets have in common, apart from the id.
type pet struct {
	Name       string
	CategoryID int64 `json:"categoryId"`
	Status     animalstore.PetStatus
}

// checkReads compares the responses of two servers: comparing the speed of servers that
// do different work would be worthless.
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
		if got, want := other.one(id), ours.one(id); got != want {
			check(fmt.Errorf("%s has a different pet %d: got %v, want %v", other.name, id, got, want))
		}
	}
}

// checkCreate creates a pet and expects it at the top of the list, and its event in the
// database if that is a file.
func (s *server) checkCreate() {
	events := s.countEvents()
	var want, created pet
	check(json.Unmarshal([]byte(newPet), &want))
	s.decode(http.MethodPost, s.api.create, newPet, &created)
	if top := s.list(page{limit: 20})[0]; created != want || top != want {
		check(fmt.Errorf("%s: after a create got %v and %v at the top of the list, want %v", s.name, created, top, want))
	}
	if got := s.countEvents() - events; s.file != "" && got != 1 {
		check(fmt.Errorf("%s stored %d events with a create, want 1", s.name, got))
	}
}

func (s *server) countEvents() (count int) {
	if s.file == "" {
		return 0
	}
	conn := must(sqlitedb.OpenConn(s.file, sqlitedb.OpenReadOnly))
	defer conn.Close()
	return must(sqlitex.ResultInt(must(conn.Prepare("SELECT count(*) FROM events"))))
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

// one returns a pet by its id.
func (s *server) one(id int64) (found pet) {
	if s.api.items != "" {
		s.decode(http.MethodGet, s.api.one(id), "", &found)
		return found
	}
	var pets []pet
	if s.decode(http.MethodGet, s.api.one(id), "", &pets); len(pets) != 1 {
		check(fmt.Errorf("%s lists %d pets for the id %d, want 1", s.name, len(pets), id))
	}
	return pets[0]
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
	filters := url.Values{"name": {"re"}}
	got := s.send(http.MethodGet, "/v1/pets?"+filters.Encode(), "")
	var pets []animalstore.Pet
	check(json.Unmarshal(got.Body, &pets))
	last := pets[len(pets)-1]
	if next := "<" + nameURI(last.ID, last.Name, filters) + `>; rel="next"`; !strings.Contains(got.Header.Get("Link"), next) {
		check(fmt.Errorf("the server's cursors by name have a different form: update nameURI\n got %s\nwant %s", got.Header.Get("Link"), next))
	}
}
