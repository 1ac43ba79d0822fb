package api

import (
	"strings"

	"animalstore"
	"animalstore/internal/db"
)

// petsByName serves GET /v1/pets?name=. Its pages aren't cached: callers search for many
// different names, which would replace the pages that most requests are for.
func (s *Server) petsByName(r *request, l *listQuery, q animalstore.PetQuery) (*page, error) {
	query := db.NameQuery{PetQuery: q, Prefix: db.FoldName(q.Name), Limit: l.limit}
	if query.Prefix == "" {
		return nil, animalstore.Errorf(animalstore.InvalidParameter,
			"name must contain more than white space and the characters -_/.,()")
	}
	if l.resumed {
		query.After = db.NamePosition{Entry: l.position.key, ID: l.position.id}
		if query.After.ID < 1 || !strings.HasPrefix(query.After.Entry, query.Prefix) || !animalstore.IsText(query.After.Entry) {
			return nil, errCursor
		}
	}
	pets, next, err := s.DB.PetsByName(r.Context(), query)
	if err != nil {
		return nil, err
	}
	var last *position
	if next != nil {
		last = &position{next.ID, next.Entry}
	}
	return newPage(false, l.link(last), encodePets(pets)), nil
}
