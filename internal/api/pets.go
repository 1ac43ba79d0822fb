package api

import (
	"net/http"
	"strconv"

	"animalstore"
	"animalstore/internal/db"
)

// listPets serves GET /v1/pets.
func (s *Server) listPets(w http.ResponseWriter, r *request) error {
	return s.answer(w, r, func() (*page, error) {
		q, err := parseListQuery("/v1/pets", r.URL.RawQuery, "status")
		if err != nil {
			return nil, err
		}
		status, err := statusFilter(q, animalstore.ParsePetStatus, animalstore.PetStatuses)
		if err != nil {
			return nil, err
		}
		// One more than asked for tells whether there is a next page.
		pets, err := s.db.Pets(r.Context(), db.PetQuery{Status: status, Before: q.before, Limit: q.limit + 1})
		if err != nil {
			return nil, err
		}
		pets, link := pageOf(q, pets, func(p *animalstore.Pet) int64 { return p.ID })
		body := appendPets(make([]byte, 0, 64+80*len(pets)), pets)
		return newPage(q.before == 0, link, body), nil
	})
}

// createPet serves POST /v1/pets.
func (s *Server) createPet(w http.ResponseWriter, r *request) error {
	in := animalstore.NewPet{Status: animalstore.PetAvailable}
	err := decode(r,
		required("name", readString(&in.Name)),
		required("categoryId", readInt64(&in.CategoryID)),
		optional("status", readStatus(&in.Status, animalstore.ParsePetStatus, animalstore.PetStatuses)))
	if err != nil {
		return err
	}
	if err := in.Validate(); err != nil {
		return err
	}
	pet, err := s.db.CreatePet(r.Context(), in)
	if err != nil {
		return err
	}
	w.Header()["Location"] = []string{"/v1/pets/" + strconv.FormatInt(pet.ID, 10)}
	return writePet(w, http.StatusCreated, &pet)
}

// getPet serves GET /v1/pets/{petId}, deprecated.
func (s *Server) getPet(w http.ResponseWriter, r *request) error {
	id, ok := parseID(r.param)
	if !ok {
		return animalstore.Errorf(animalstore.PetNotFound, "there is no such animal: an id is a positive integer")
	}
	pet, err := s.db.Pet(r.Context(), id)
	if err != nil {
		return err
	}
	return writePet(w, http.StatusOK, &pet)
}

func writePet(w http.ResponseWriter, status int, pet *animalstore.Pet) error {
	return writeBody(w, status, append(appendPet(make([]byte, 0, 128), pet), '\n'))
}
