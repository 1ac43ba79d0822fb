package console

import (
	"encoding/json"
	"iter"
	"net/http"
	"strings"
	"unicode/utf8"

	"animalstore"
	"animalstore/client"
)

const (
	// maxFind is the maximum length of a search.
	maxFind = 100
	// matchRows is how many pets are suggested.
	matchRows = 8
)

// findText is the text in the search box.
func findText(r *http.Request) (string, error) {
	text := strings.TrimSpace(r.URL.Query().Get("find"))
	switch {
	case !utf8.ValidString(text):
		return "", badField("", "the search isn’t valid text")
	case utf8.RuneCountInString(text) > maxFind:
		return "", badField("", "search for at most "+number(maxFind)+" characters: the beginning of a name is enough")
	}
	return text, nil
}

// petWithNumber returns the pet whose id was typed. It makes no call if the text isn't a
// number.
func (v *visit) petWithNumber(text string) (pet animalstore.Pet, found bool, err error) {
	id, err := parseInteger(text)
	if err != nil {
		return pet, false, nil
	}
	pet, err = v.api.FindPet(v.r.Context(), id)
	if codeOf(err) == animalstore.PetNotFound {
		return pet, false, nil
	}
	return pet, err == nil, err
}

// match is a pet that is suggested.
type match struct {
	ID     int64                 `json:"id"`
	Name   string                `json:"name"`
	Status animalstore.PetStatus `json:"status"`
}

// suggestPets serves GET /console/find: the first pets that match, as JSON for the script
// of the search box. Without the script, the box leads to the list of pets.
func (v *visit) suggestPets() error {
	text, err := findText(v.r)
	if err != nil {
		return err
	}
	if text == "" {
		if v.c.chargeAddress(v.w, v.r) { // no call charges this to the key
			v.writeJSON([]match{})
		}
		return nil
	}
	matches := []match{}
	numbered, found, err := v.petWithNumber(text)
	if err != nil {
		return err
	}
	if found {
		matches = append(matches, match{numbered.ID, numbered.Name, numbered.Status})
	}
	pets, _, err := readRows("", func(options ...client.CallOption) iter.Seq2[animalstore.Pet, error] {
		return v.api.ListPets(v.r.Context(), client.PetQuery{Name: text, PageSize: matchRows}, options...)
	})
	if err != nil {
		return err
	}
	for _, pet := range pets {
		if !found || pet.ID != numbered.ID {
			matches = append(matches, match{pet.ID, pet.Name, pet.Status})
		}
	}
	v.writeJSON(matches)
	return nil
}

func (v *visit) writeJSON(value any) {
	body, err := json.Marshal(value)
	if err != nil {
		panic(err) // it has only text and numbers
	}
	v.w.Header().Set("Content-Type", "application/json")
	v.w.Header().Set("X-Content-Type-Options", "nosniff")
	v.w.Write(body)
}
