package animalstore

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// PetStatus says whether a pet can be bought.
type PetStatus string

const (
	PetAvailable PetStatus = "available"
	PetPending   PetStatus = "pending"
	PetSold      PetStatus = "sold"
)

// PetStatuses are all of them, in the order a pet usually passes through.
var PetStatuses = []PetStatus{PetAvailable, PetPending, PetSold}

// ParsePetStatus reads one of [PetStatuses], exactly as spelled there.
func ParsePetStatus(s string) (PetStatus, bool) {
	switch s := PetStatus(s); s {
	case PetAvailable, PetPending, PetSold:
		return s, true
	}
	return "", false
}

// NewPet is what a caller says of a pet to add it.
type NewPet struct {
	Name       string    `json:"name"`
	CategoryID int64     `json:"categoryId"`
	Status     PetStatus `json:"status,omitempty"` // empty: available
}

// Pet is a pet of the store.
type Pet struct {
	ID         int64     `json:"id"` // positive, never given twice
	Name       string    `json:"name"`
	CategoryID int64     `json:"categoryId"`
	Status     PetStatus `json:"status"`
}

// petMoves are the changes of status a caller may make.
var petMoves = map[PetStatus][]PetStatus{
	PetAvailable: {PetPending, PetSold},
	PetPending:   {PetAvailable, PetSold},
}

// SetStatus moves the pet to another status, where that is allowed. Nobody
// but its order moves a pet that has an open one. A move to the status it
// has is none.
func (p *Pet) SetStatus(to PetStatus, ordered bool) error {
	switch {
	case to == p.Status:
		return nil
	case ordered:
		return Errorf(InvalidTransition, "pet %d has an open order, which decides its status: move the order instead", p.ID)
	case slices.Contains(petMoves[p.Status], to):
		p.Status = to
		return nil
	case p.Status == PetSold:
		return Errorf(InvalidTransition, "pet %d is sold, which is final", p.ID)
	}
	return Errorf(InvalidTransition, "pet %d cannot become %s: it is %s", p.ID, to, p.Status)
}

// CheckRemovable refuses to remove a pet that has an open order.
func (p *Pet) CheckRemovable(ordered bool) error {
	if ordered {
		return Errorf(InvalidTransition, "pet %d has an open order: deliver or cancel that first", p.ID)
	}
	return nil
}

// CheckOrderable refuses an order for a pet that is not to be had.
func (p *Pet) CheckOrderable() error {
	if p.Status != PetAvailable {
		return Errorf(PetNotAvailable, "pet %d is %s: only an available one can be ordered", p.ID, p.Status)
	}
	return nil
}

// MaxNameLength is the longest name of a pet or a category, in code points.
const MaxNameLength = 1024

// Validate refuses a pet the store would not take, with a message that
// names the field. An empty status is fine: the store makes it available.
func (p NewPet) Validate() error {
	if err := ValidateName(p.Name); err != nil {
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

// ValidateName refuses what cannot be the name of a pet or a category.
func ValidateName(name string) error {
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
