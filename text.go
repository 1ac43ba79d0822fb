package animalstore

// OptionalText is a text that is null in JSON if it is empty.
type OptionalText string

// MarshalJSON writes null for an empty text.
func (t OptionalText) MarshalJSON() ([]byte, error) {
	if t == "" {
		return []byte("null"), nil
	}
	return EncodeJSON(string(t))
}
