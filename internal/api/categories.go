package api

import (
	"net/http"
	"strconv"

	"animalstore"
	"animalstore/internal/db"
)

// listCategories serves GET /v1/categories.
func (s *Server) listCategories(w http.ResponseWriter, r *request) error {
	q, err := parseListQuery("/v1/categories", r.URL.RawQuery)
	if err != nil {
		return err
	}
	query := db.CategoryQuery{Limit: q.limit + 1}
	if q.resumed {
		query.After = &q.position
	}
	categories, err := s.db.Categories(r.Context(), query)
	if err != nil {
		return err
	}
	return writePage(w, r, q, categories, func(c *animalstore.Category) int64 { return c.ID })
}

// getCategory serves GET /v1/categories/{categoryId}.
func (s *Server) getCategory(w http.ResponseWriter, r *request) error {
	id, err := categoryID(r)
	if err != nil {
		return err
	}
	category, err := s.db.Category(r.Context(), id)
	if err != nil {
		return err
	}
	return writeResource(w, r, http.StatusOK, category)
}

// putCategory serves PUT /v1/categories/{categoryId}.
func (s *Server) putCategory(w http.ResponseWriter, r *request) error {
	var category animalstore.Category
	if err := decode(r, required("name", readString(&category.Name))); err != nil {
		return err
	}
	if err := category.Validate(); err != nil {
		return err
	}
	var err error
	if category.ID, err = categoryID(r); err != nil {
		return err
	}
	created, err := s.db.PutCategory(r.Context(), category, func(before *animalstore.Category) error {
		if before == nil {
			return r.checkIfMatch("")
		}
		return r.checkIfMatch(etagOf(encode(before)))
	})
	if err != nil {
		return err
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
		w.Header()["Location"] = []string{"/v1/categories/" + strconv.FormatInt(category.ID, 10)}
	}
	return writeResource(w, r, status, category)
}

func categoryID(r *request) (int64, error) {
	id, ok := parseInt64(r.param)
	if !ok {
		return 0, animalstore.Errorf(animalstore.CategoryNotFound, "there is no such category: an id is a 64-bit integer")
	}
	return id, nil
}
