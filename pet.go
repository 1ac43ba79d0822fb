package animalstore

import (
	"cmp"
	"errors"
	"net/url"
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

// PetStatuses are all statuses, in the order a pet usually goes through them.
var PetStatuses = []PetStatus{PetAvailable, PetPending, PetSold}

// NewPet is a pet to add.
type NewPet struct {
	Name       string    `json:"name"`
	CategoryID int64     `json:"categoryId"`
	Status     PetStatus `json:"status,omitempty"` // empty: available
}

// Pet is a pet in the store.
type Pet struct {
	ID         int64     `json:"id"` // positive, never reused
	Name       string    `json:"name"`
	CategoryID int64     `json:"categoryId"`
	Status     PetStatus `json:"status"`
}

// Pet returns the pet to add, without an id.
func (n NewPet) Pet() Pet {
	return Pet{Name: n.Name, CategoryID: n.CategoryID, Status: cmp.Or(n.Status, PetAvailable)}
}

// MaxNamePrefix is how many characters of a name can be searched for.
const MaxNamePrefix = 100

// PetQuery selects pets. A field with its zero value matches every pet.
type PetQuery struct {
	Status     PetStatus
	CategoryID *int64  // new(int64(7)) for category 7: 0 is a valid category
	IDs        []int64 // at most 100
	Name       string  // what one of the first four words of the name begins with, ignoring case and separators; not with IDs
}

// Values returns the parameters of the list.
func (q PetQuery) Values() url.Values {
	values := url.Values{}
	set(values, "status", q.Status)
	setInteger(values, "categoryId", q.CategoryID)
	setIDs(values, "id", q.IDs)
	set(values, "name", q.Name)
	return values
}

// ParsePetQuery is the inverse of [PetQuery.Values].
func ParsePetQuery(values url.Values) (PetQuery, error) {
	p := NewParameters(values)
	q := PetQuery{
		Status:     oneOf(p, "status", PetStatuses...),
		CategoryID: p.anyInteger("categoryId"),
		IDs:        p.ids("id"),
		Name:       p.line("name", MaxNamePrefix),
	}
	if q.Name != "" && q.IDs != nil {
		p.Fail("name", "can't be combined with id: omit one of them")
	}
	return q, p.Err()
}

// petMoves are the status changes that callers may make.
var petMoves = map[PetStatus][]PetStatus{
	PetAvailable: {PetPending, PetSold},
	PetPending:   {PetAvailable, PetSold},
}

// SetStatus changes the status, if that is allowed. ordered is whether the pet
// has an open order, which then determines its status. Setting the current
// status again is a no-op.
func (p *Pet) SetStatus(to PetStatus, ordered bool) error {
	switch {
	case to == p.Status:
		return nil
	case ordered:
		return Errorf(InvalidTransition, "this pet's open order controls its status: change the order instead")
	case slices.Contains(petMoves[p.Status], to):
		p.Status = to
		return nil
	}
	return Errorf(InvalidTransition, "this pet is %s, which is final", p.Status)
}

// CheckRemovable returns an error if the pet has an open order.
func (p *Pet) CheckRemovable(ordered bool) error {
	if ordered {
		return Errorf(InvalidTransition, "this pet has an open order: deliver or cancel that first")
	}
	return nil
}

// CheckOrderable returns an error unless the pet is available.
func (p *Pet) CheckOrderable() error {
	if p.Status != PetAvailable {
		return Errorf(PetNotAvailable, "this pet is %s: only an available one can be ordered", p.Status)
	}
	return nil
}

// MaxNameLength is the maximum length of the name of a pet or a category, in
// code points.
const MaxNameLength = 1024

// Validate checks every field. An empty status is valid and means available.
func (p NewPet) Validate() error {
	if err := ValidateName(p.Name); err != nil {
		return err
	}
	if p.Status == "" {
		return nil
	}
	return validatePetStatus(p.Status)
}

func validatePetStatus(s PetStatus) error {
	if !slices.Contains(PetStatuses, s) {
		return Errorf(ValidationFailed, "status %s", MustBeOneOf(PetStatuses))
	}
	return nil
}

// MaxPetBatch is how many pets can be added at once.
const MaxPetBatch = 100

// NewPetBatch are pets to add at once: all of them or none.
type NewPetBatch struct {
	Pets []NewPet `json:"pets"`
}

// PetBatch are pets that were added at once, in the order given.
type PetBatch struct {
	Pets []Pet `json:"pets"`
}

// Validate checks the number of pets and each of them. The error says which one is wrong.
func (b NewPetBatch) Validate() error {
	if len(b.Pets) < 1 || len(b.Pets) > MaxPetBatch {
		return Errorf(ValidationFailed, "pets must have 1 to %d items", MaxPetBatch)
	}
	for i, pet := range b.Pets {
		var invalid *Error
		if err := pet.Validate(); errors.As(err, &invalid) {
			return Errorf(ValidationFailed, "pets[%d].%s", i, invalid.Message)
		}
	}
	return nil
}

// PetPatch is a change of a pet. A nil field stays as it is: write
// PetPatch{Name: new("Rex")}.
type PetPatch struct {
	Name       *string    `json:"name,omitempty"`
	CategoryID *int64     `json:"categoryId,omitempty"`
	Status     *PetStatus `json:"status,omitempty"`
}

// Validate checks what doesn't depend on the pet.
func (patch PetPatch) Validate() error {
	if patch.Name != nil {
		if err := ValidateName(*patch.Name); err != nil {
			return err
		}
	}
	if patch.Status != nil {
		return validatePetStatus(*patch.Status)
	}
	return nil
}

// Apply changes p, if the patch is valid and allowed for p. ordered is whether p
// has an open order. After an error p is unchanged.
func (patch PetPatch) Apply(p *Pet, ordered bool) error {
	if err := patch.Validate(); err != nil {
		return err
	}
	if patch.Status != nil {
		if err := p.SetStatus(*patch.Status, ordered); err != nil {
			return err
		}
	}
	if patch.Name != nil {
		p.Name = *patch.Name
	}
	if patch.CategoryID != nil {
		p.CategoryID = *patch.CategoryID
	}
	return nil
}

// ValidateName checks the name of a pet or a category.
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

// Inventory is the number of pets in each status.
type Inventory struct {
	Available int64 `json:"available"`
	Pending   int64 `json:"pending"`
	Sold      int64 `json:"sold"`
}

// Of returns the number of pets with this status.
func (i Inventory) Of(status PetStatus) int64 {
	switch status {
	case PetAvailable:
		return i.Available
	case PetPending:
		return i.Pending
	case PetSold:
		return i.Sold
	}
	return 0
}

// InventoryQuery selects the pets to count.
type InventoryQuery struct {
	CategoryID *int64 // nil: all pets
}

// Values returns the parameters of the inventory.
func (q InventoryQuery) Values() url.Values {
	values := url.Values{}
	setInteger(values, "categoryId", q.CategoryID)
	return values
}

// ParseInventoryQuery is the inverse of [InventoryQuery.Values].
func ParseInventoryQuery(values url.Values) (InventoryQuery, error) {
	p := NewParameters(values)
	q := InventoryQuery{CategoryID: p.anyInteger("categoryId")}
	return q, p.Err()
}

// Category groups pets. The first pet of a category creates it, with an empty
// name until one is set.
type Category struct {
	ID   int64  `json:"id"` // chosen by callers: any int64
	Name string `json:"name"`
}

// Validate checks the name.
func (c Category) Validate() error { return ValidateName(c.Name) }

const (
	MaxPhotos = 10       // of a pet
	MaxUpload = 10 << 20 // bytes of a picture that is sent
)

// Photo is a picture of a pet, as the store keeps it: upright, of a limited size, and
// without the metadata of the file it was made from. It never changes.
type Photo struct {
	ID          int64  `json:"id"`
	PetID       int64  `json:"petId"`
	ContentType string `json:"contentType"` // image/jpeg, or image/png if it has transparency
	Width       int    `json:"width"`
	Height      int    `json:"height"`
	Bytes       int64  `json:"bytes"` // of the image, without its thumbnail
	CreatedAt   Time   `json:"createdAt"`
}

// PhotoQuery selects the photos of pets.
type PhotoQuery struct {
	PetIDs []int64 // 1 to 100
}

// Values returns the parameters of the list.
func (q PhotoQuery) Values() url.Values {
	values := url.Values{}
	setIDs(values, "petId", q.PetIDs)
	return values
}

// ParsePhotoQuery is the inverse of [PhotoQuery.Values].
func ParsePhotoQuery(values url.Values) (PhotoQuery, error) {
	p := NewParameters(values)
	q := PhotoQuery{PetIDs: p.ids("petId")}
	return q, p.Err()
}
