package animalstore

// Category groups pets. The first pet of a category creates it, with an empty
// name until one is set.
type Category struct {
	ID   int64  `json:"id"` // chosen by callers: any int64
	Name string `json:"name"`
}

// Validate checks the name.
func (c Category) Validate() error { return ValidateName(c.Name) }
