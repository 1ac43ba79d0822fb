package api

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"animalstore"
	"animalstore/internal/db"
)

// listPets serves GET /v1/pets.
func (s *Server) listPets(w http.ResponseWriter, r *request) error {
	return s.answer(w, r, func() (*page, error) {
		q, err := parseListQuery("/v1/pets", r.URL.RawQuery, "categoryId", "id", "status")
		if err != nil {
			return nil, err
		}
		query, err := petQuery(q)
		if err != nil {
			return nil, err
		}
		pets, err := s.db.Pets(r.Context(), query)
		if err != nil {
			return nil, err
		}
		pets, link := pageOf(q, pets, func(p *animalstore.Pet) int64 { return p.ID })
		body := slices.Grow(*bodies.Get().(*[]byte), 64+80*len(pets))
		return newPage(!q.resumed, link, appendPets(body, pets)), nil
	})
}

// petQuery reads the filters of a list of pets. It asks for one more than the
// page holds, which tells whether there is a next page.
func petQuery(q *listQuery) (query db.PetQuery, err error) {
	if query.Status, err = statusFilter(q, animalstore.ParsePetStatus, animalstore.PetStatuses); err != nil {
		return query, err
	}
	if text, ok := q.filters["categoryId"]; ok {
		id, ok := parseInt64(text)
		if !ok {
			return query, q.wrong("categoryId", "must be a 64-bit integer")
		}
		query.CategoryID = &id
	}
	if text, ok := q.filters["id"]; ok {
		if query.IDs, ok = parseIDs(text); !ok {
			return query, q.wrong("id", "must be a comma-separated list of 1 to 100 positive integers")
		}
		if !q.given {
			q.limit = len(query.IDs)
		}
	}
	query.Limit = q.limit + 1
	query.Before, err = q.before()
	return query, err
}

func parseIDs(text string) ([]int64, bool) {
	var ids []int64
	for part := range strings.SplitSeq(text, ",") {
		id, ok := parseID(part)
		if !ok || len(ids) == maxLimit {
			return nil, false
		}
		ids = append(ids, id)
	}
	return ids, true
}

// createPet serves POST /v1/pets.
func (s *Server) createPet(w http.ResponseWriter, r *request) error {
	in := animalstore.NewPet{Status: animalstore.PetAvailable}
	err := decode(r,
		required("name", readString(&in.Name)),
		required("categoryId", readInt64(&in.CategoryID)),
		optional("status", readPetStatus(&in.Status)))
	if err != nil {
		return err
	}
	if err := in.Validate(); err != nil {
		return err
	}
	once, err := s.once(r, "createPet")
	if err != nil {
		return err
	}
	pet, replayed, err := s.db.CreatePet(r.Context(), in, once)
	if err != nil {
		return err
	}
	tellReplay(w, replayed)
	w.Header()["Location"] = []string{"/v1/pets/" + strconv.FormatInt(pet.ID, 10)}
	return writePet(w, r, http.StatusCreated, &pet)
}

// getPet serves GET /v1/pets/{petId}, deprecated.
func (s *Server) getPet(w http.ResponseWriter, r *request) error {
	id, err := petID(r)
	if err != nil {
		return err
	}
	pet, err := s.db.Pet(r.Context(), id)
	if err != nil {
		return err
	}
	return writePet(w, r, http.StatusOK, &pet)
}

// updatePet serves PATCH /v1/pets/{petId}.
func (s *Server) updatePet(w http.ResponseWriter, r *request) error {
	var in animalstore.Pet
	seen, err := decodePatch(r,
		optional("name", readString(&in.Name)),
		optional("categoryId", readInt64(&in.CategoryID)),
		optional("status", readPetStatus(&in.Status)))
	if err != nil {
		return err
	}
	if seen["name"] {
		if err := animalstore.ValidateName(in.Name); err != nil {
			return err
		}
	}
	id, err := petID(r)
	if err != nil {
		return err
	}
	pet, err := s.db.UpdatePet(r.Context(), id, func(p *animalstore.Pet, ordered bool) error {
		if err := r.checkIfMatch(etagOf(encodePet(p))); err != nil {
			return err
		}
		if seen["name"] {
			p.Name = in.Name
		}
		if seen["categoryId"] {
			p.CategoryID = in.CategoryID
		}
		if seen["status"] {
			return p.SetStatus(in.Status, ordered)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return writePet(w, r, http.StatusOK, &pet)
}

// deletePet serves DELETE /v1/pets/{petId}.
func (s *Server) deletePet(w http.ResponseWriter, r *request) error {
	id, err := petID(r)
	if err != nil {
		return err
	}
	err = s.db.DeletePet(r.Context(), id, func(p *animalstore.Pet, ordered bool) error {
		if err := r.checkIfMatch(etagOf(encodePet(p))); err != nil {
			return err
		}
		return p.CheckRemovable(ordered)
	})
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func petID(r *request) (int64, error) {
	id, ok := parseID(r.param)
	if !ok {
		return 0, animalstore.Errorf(animalstore.PetNotFound, "there is no such pet: an id is a positive integer")
	}
	return id, nil
}

func encodePet(p *animalstore.Pet) []byte {
	return append(appendPet(make([]byte, 0, 128), p), '\n')
}

func writePet(w http.ResponseWriter, r *request, status int, pet *animalstore.Pet) error {
	return newEntity(encodePet(pet)).write(w, r, status)
}
