package console

import (
	"bytes"
	"iter"
	"net/http"

	"animalstore"
	"animalstore/client"
	"animalstore/internal/petfile"
)

// exportPets serves GET /console/pets/export: all pets that match the filters of the list, as
// CSV. Nothing is sent until all are read, because part of a file looks like a whole one.
func (v *visit) exportPets() error {
	defer v.allowWork()()
	p := v.newPetsPage()
	var err error
	if p.Categories, err = v.readCategories(); err != nil {
		return err
	}
	q, err := v.petQuery(&p)
	if err != nil {
		return err
	}
	var file bytes.Buffer
	pets := atMost(maxFilePets, v.api.ListPets(v.r.Context(), q))
	if err := petfile.Export("-", &file, petfile.CSV, pets, func() {}); err != nil {
		return err
	}
	v.w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	v.w.Header().Set("Content-Disposition", `attachment; filename="pets.csv"`)
	v.w.Header().Set("X-Content-Type-Options", "nosniff")
	v.w.Write(file.Bytes())
	return nil
}

// atMost ends a list with an error if it has more pets than a file may have.
func atMost(limit int, pets iter.Seq2[animalstore.Pet, error]) iter.Seq2[animalstore.Pet, error] {
	return func(yield func(animalstore.Pet, error) bool) {
		n := 0
		for pet, err := range pets {
			if n++; n > limit {
				err = &client.Error{Status: http.StatusBadRequest, Err: animalstore.Errorf(animalstore.ValidationFailed,
					"more than %s pets match: filter the list, or use the command “animalstore pets export”, which has no limit", number(int64(limit)))}
			}
			if !yield(pet, err) || err != nil {
				return
			}
		}
	}
}
