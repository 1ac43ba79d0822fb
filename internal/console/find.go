package console

import (
	"encoding/json"
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

// typedText is the text in the search box. People write an id as #17.
func typedText(r *http.Request) string {
	return strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(r.URL.Query().Get("find")), "#"))
}

// findText is the text in the search box, if it can be found.
func findText(r *http.Request) (string, error) {
	text := typedText(r)
	switch {
	case !utf8.ValidString(text):
		return "", badField("", "the search isn’t valid text")
	case utf8.RuneCountInString(text) > maxFind:
		return "", badField("", "search for at most "+number(maxFind)+" characters: the beginning of a word is enough")
	}
	return text, nil
}

// match is a pet that is suggested.
type match struct {
	animalstore.Pet
	Category string `json:"category"`
	face
}

// suggestPets serves GET /console/find: the first pets that match, as JSON for the script
// of the search box. Without the script, the box leads to the list of pets.
func (v *visit) suggestPets() error {
	text, err := findText(v.r)
	if err != nil {
		return err
	}
	if text == "" {
		if err := v.chargeAddress(); err != nil { // no call charges this to the key
			return err
		}
		v.writeJSON([]match{})
		return nil
	}
	var found []animalstore.Pet
	if id, err := parseInteger(text); err == nil {
		pet, err := v.api.FindPet(v.r.Context(), id)
		switch {
		case err == nil:
			found = append(found, pet)
		case codeOf(err) != animalstore.PetNotFound:
			return err
		}
	}
	pets, _, err := readRows(v, matching(v.api.ListPets, animalstore.PetQuery{Name: text}), client.PageSize(matchRows))
	if err != nil && codeOf(err) != animalstore.InvalidParameter { // so far, only separators were typed
		return err
	}
	for _, pet := range pets {
		if len(found) == 0 || pet.ID != found[0].ID {
			found = append(found, pet)
		}
	}
	return v.writeMatches(found)
}

// writeMatches adds the pictures and categories of pets that were found.
func (v *visit) writeMatches(pets []animalstore.Pet) error {
	matches := []match{}
	if len(pets) > 0 {
		known, err := v.readCategories()
		if err != nil {
			return err
		}
		rows, err := v.petRows(pets, known)
		if err != nil {
			return err
		}
		for _, r := range rows {
			matches = append(matches, match{r.Pet, r.Category, r.Face})
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
