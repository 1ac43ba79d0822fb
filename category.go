package animalstore

// Category groups pets. It exists from the first pet that names it on,
// with an empty name until somebody gives it one.
type Category struct {
	ID   int64  `json:"id"` // chosen by callers: any int64
	Name string `json:"name"`
}

// Validate refuses a category nobody could tell by its name.
func (c Category) Validate() error { return ValidateName(c.Name) }
