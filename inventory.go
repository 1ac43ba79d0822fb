package animalstore

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
