package animalstore

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// PetStatus says whether an animal can be bought.
type PetStatus string

const (
	PetAvailable PetStatus = "available"
	PetPending   PetStatus = "pending"
	PetSold      PetStatus = "sold"
)

// PetStatuses are all of them, in the order an animal usually passes through.
var PetStatuses = []PetStatus{PetAvailable, PetPending, PetSold}

// ParsePetStatus reads one of [PetStatuses], exactly as spelled there.
func ParsePetStatus(s string) (PetStatus, bool) {
	switch s := PetStatus(s); s {
	case PetAvailable, PetPending, PetSold:
		return s, true
	}
	return "", false
}

// NewPet is what a caller says of an animal to add it.
type NewPet struct {
	Name       string    `json:"name"`
	CategoryID int64     `json:"categoryId"`
	Status     PetStatus `json:"status,omitempty"` // empty: available
}

// Pet is an animal of the store.
type Pet struct {
	ID         int64     `json:"id"` // positive, never given twice
	Name       string    `json:"name"`
	CategoryID int64     `json:"categoryId"`
	Status     PetStatus `json:"status"`
}

// MaxNameLength is the longest name of an animal, in code points.
const MaxNameLength = 1024

// Validate refuses an animal the store would not take, with a message that
// names the field. An empty status is fine: the store makes it available.
func (p NewPet) Validate() error {
	if err := validateName(p.Name); err != nil {
		return err
	}
	if p.Status == "" {
		return nil
	}
	if _, ok := ParsePetStatus(string(p.Status)); !ok {
		return Errorf(ValidationFailed, "status must be one of available, pending, sold")
	}
	return nil
}

func validateName(name string) error {
	switch {
	case name == "":
		return Errorf(ValidationFailed, "name must not be empty: send 1 to %d characters", MaxNameLength)
	case !utf8.ValidString(name):
		return Errorf(ValidationFailed, "name must be valid UTF-8")
	case utf8.RuneCountInString(name) > MaxNameLength:
		return Errorf(ValidationFailed, "name must have at most %d characters, not %d", MaxNameLength, utf8.RuneCountInString(name))
	case strings.ContainsRune(name, 0):
		return Errorf(ValidationFailed, "name must not contain the character U+0000")
	case strings.IndexFunc(name, func(r rune) bool { return !unicode.IsSpace(r) }) < 0:
		return Errorf(ValidationFailed, "name must not be white space only: send at least one visible character")
	}
	return nil
}
