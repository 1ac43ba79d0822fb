package api

import (
	"net/http"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/strictjson"
)

// listCategories serves GET /v1/categories. Any integer is the id of a category.
func (s *Server) listCategories(w http.ResponseWriter, r *request) error {
	l, _, err := parseListQuery("/v1/categories", r.URL.RawQuery, parseNoFilters)
	if err != nil {
		return err
	}
	query := db.CategoryQuery{Limit: l.limit + 1}
	if l.resumed {
		query.After = &l.position.id
	}
	categories, err := s.DB.Categories(r.Context(), query)
	if err != nil {
		return err
	}
	categories, link := pageOf(l, categories, func(c *animalstore.Category) int64 { return c.ID })
	setHeader(w, "Link", link)
	return writeResource(w, r, http.StatusOK, categories)
}

// getCategory serves GET /v1/categories/{categoryId}.
func (s *Server) getCategory(w http.ResponseWriter, r *request) error {
	return serveAtPath(w, r, &categoryKind, s.DB.Category)
}

// putCategory serves PUT /v1/categories/{categoryId}.
func (s *Server) putCategory(w http.ResponseWriter, r *request) error {
	category, err := decode(r, strictjson.DecodeCategory)
	if err != nil {
		return err
	}
	if category.ID, err = categoryKind.pathID(r); err != nil {
		return err
	}
	created, err := s.DB.PutCategory(r.Context(), category, func(before *animalstore.Category) error {
		if before == nil {
			return r.checkIfMatch("")
		}
		tag := etagOf(encode(before))
		if err := r.checkIfMatch(tag); err != nil {
			return err
		}
		return r.checkIfNoneMatch(tag)
	})
	if err != nil {
		return err
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
		setLocation(w, "/v1/categories", category.ID)
	}
	return writeResource(w, r, status, category)
}
