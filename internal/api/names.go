package api

import (
	"strings"
	"unicode/utf8"

	"animalstore/internal/db"
)

// maxNamePrefix is how many code points of a name a caller can search for.
const maxNamePrefix = 100

// petsByName serves GET /v1/pets?name=. Its pages aren't cached: callers search for many
// different names, which would replace the pages that most requests are for.
func (s *Server) petsByName(r *request, q *listQuery) (*page, error) {
	query, err := nameQuery(q)
	if err != nil {
		return nil, err
	}
	pets, next, err := s.db.PetsByName(r.Context(), query)
	if err != nil {
		return nil, err
	}
	var last *position
	if next != nil {
		last = &position{next.ID, next.Entry}
	}
	return newPage(false, q.link(last), encodePets(pets)), nil
}

func nameQuery(q *listQuery) (query db.NameQuery, err error) {
	name := q.filters["name"]
	n := utf8.RuneCountInString(name)
	if n < 1 || n > maxNamePrefix || !isText(name) {
		return query, q.invalidFilter("name", "must have 1 to 100 characters, in UTF-8 and without U+0000")
	}
	if _, ok := q.filters["id"]; ok {
		return query, q.invalidFilter("name", "can't be combined with id: omit one of them")
	}
	if query.Status, query.CategoryID, err = petFilters(q); err != nil {
		return query, err
	}
	query.Prefix, query.Limit = db.FoldName(name), q.limit
	if q.resumed {
		query.After = db.NamePosition{Entry: q.position.key, ID: q.position.id}
		if query.After.ID < 1 || !strings.HasPrefix(query.After.Entry, query.Prefix) || !isText(query.After.Entry) {
			return query, errCursor
		}
	}
	return query, nil
}

// isText reports whether every database can store and compare s as text.
func isText(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }
