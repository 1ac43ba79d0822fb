package api

import (
	"context"
	"net/http"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/strictjson"
)

// listPets serves GET /v1/pets.
func (s *Server) listPets(w http.ResponseWriter, r *request) error {
	return s.writeCached(w, r, func() (*page, error) {
		l, q, err := parseListQuery("/v1/pets", r.URL.RawQuery, animalstore.ParsePetQuery)
		if err != nil {
			return nil, err
		}
		if q.Name != "" {
			return s.petsByName(r, l, q)
		}
		if q.IDs != nil && !l.given {
			l.limit = len(q.IDs)
		}
		at, err := l.page()
		if err != nil {
			return nil, err
		}
		pets, err := s.DB.Pets(r.Context(), q, at)
		if err != nil {
			return nil, err
		}
		pets, link := pageOf(l, pets, func(p *animalstore.Pet) int64 { return p.ID })
		return newPage(!l.resumed, link, encodePets(pets)), nil
	})
}

// createPet serves POST /v1/pets.
func (s *Server) createPet(w http.ResponseWriter, r *request) error {
	in, err := decode(r, strictjson.DecodeNewPet)
	if err != nil {
		return err
	}
	idempotency, err := s.idempotency(r, "createPet")
	if err != nil {
		return err
	}
	pet, replayed, err := s.DB.CreatePet(r.Context(), in, idempotency)
	if err != nil {
		return err
	}
	setReplayed(w, replayed)
	setLocation(w, "/v1/pets", pet.ID)
	return writePet(w, r, http.StatusCreated, &pet)
}

// createPetBatch serves POST /v1/pets/batch.
func (s *Server) createPetBatch(w http.ResponseWriter, r *request) error {
	in, err := decode(r, strictjson.DecodeNewPetBatch)
	if err != nil {
		return err
	}
	idempotency, err := s.idempotency(r, "createPetBatch")
	if err != nil {
		return err
	}
	pets, replayed, err := s.DB.CreatePets(r.Context(), in.Pets, idempotency)
	if err != nil {
		return err
	}
	setReplayed(w, replayed)
	return writeResource(w, r, http.StatusCreated, animalstore.PetBatch{Pets: pets})
}

// getPet serves GET /v1/pets/{petId}, deprecated.
func (s *Server) getPet(w http.ResponseWriter, r *request) error {
	pet, err := atPath(r, &petKind, s.DB.Pet)
	if err != nil {
		return err
	}
	return writePet(w, r, http.StatusOK, &pet)
}

// updatePet serves PATCH /v1/pets/{petId}.
func (s *Server) updatePet(w http.ResponseWriter, r *request) error {
	patch, err := decode(r, strictjson.DecodePetPatch)
	if err != nil {
		return err
	}
	pet, err := atPath(r, &petKind, func(ctx context.Context, id int64) (animalstore.Pet, error) {
		return s.DB.UpdatePet(ctx, id, func(p *animalstore.Pet, ordered bool) error {
			if err := r.checkIfMatch(etagOf(encodePet(p))); err != nil {
				return err
			}
			return patch.Apply(p, ordered)
		})
	})
	if err != nil {
		return err
	}
	return writePet(w, r, http.StatusOK, &pet)
}

// deletePet serves DELETE /v1/pets/{petId}.
func (s *Server) deletePet(w http.ResponseWriter, r *request) error {
	return deleteAtPath(w, r, &petKind, func(ctx context.Context, id int64) error {
		return s.DB.DeletePet(ctx, id, func(p *animalstore.Pet, ordered bool) error {
			if err := r.checkIfMatch(etagOf(encodePet(p))); err != nil {
				return err
			}
			return p.CheckRemovable(ordered)
		})
	})
}

func encodePet(p *animalstore.Pet) []byte {
	return append(db.AppendPet(make([]byte, 0, 128), p), '\n')
}

func writePet(w http.ResponseWriter, r *request, status int, pet *animalstore.Pet) error {
	return newEntity(encodePet(pet)).write(w, r, status)
}

func encodePets(pets []animalstore.Pet) []byte {
	size := len("[]\n")
	for i := range pets {
		size += 80 + len(pets[i].Name)
	}
	b := append(make([]byte, 0, size), '[')
	for i := range pets {
		if i > 0 {
			b = append(b, ',')
		}
		b = db.AppendPet(b, &pets[i])
	}
	return append(b, "]\n"...)
}
