package main

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"animalstore"
)

// page says which pets to list, newest first.
type page struct {
	below  int64 // an id, or 0 for the first page
	limit  int
	status animalstore.PetStatus // or "" for all
}

// api is the form of a server's requests. All ask for the same.
type api struct {
	list   func(page) string // a request target
	get    func(id int64) string
	create string
	items  string // the field of a list's response that holds the pets, or "" for all of it
}

var ourAPI = api{
	list: func(p page) string {
		switch {
		case p.below > 0 && p.limit == 20:
			return cursorURI(p.below, p.status)
		case p.below > 0:
			return cursorURI(p.below, p.status) + "&limit=" + strconv.Itoa(p.limit)
		case p.limit == 20 && p.status == "":
			return "/v1/pets"
		}
		return "/v1/pets?" + listQuery(p)
	},
	get:    func(id int64) string { return "/v1/pets/" + strconv.FormatInt(id, 10) },
	create: "/v1/pets",
}

func listQuery(p page) string {
	query := "limit=" + strconv.Itoa(p.limit)
	if p.status != "" {
		query += "&status=" + string(p.status)
	}
	return query
}

// plainAPI is that of the servers written for this benchmark.
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
}

// pocketBaseAPI is its records API. Its ids are random, so a place in a list is
// a time of creation. Its responses have the collection's name and id, and the
// time, besides our fields: requesting fewer of them takes it twice the time.
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
	items:  "items",
}

// cursorURI is a page of the list that starts below an id, as the server would
// link to it. Following links to a random place would take hours.
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
