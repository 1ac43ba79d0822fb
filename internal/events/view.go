package events

import "animalstore"

// View is what the reader of events may see. All decisions about that are in this file.
type View struct {
	KeyID       int64
	Permissions animalstore.Permissions
}

// Sees reports whether the reader may see events of this type.
func (v View) Sees(t animalstore.EventType) bool { return v.Permissions.Allows(t.Permission()) }

// form is how much of its origin an event shows.
type form int

const (
	full      form = iota
	named          // the key, but not the request
	anonymous      // neither
	forms          // how many there are
)

// form returns how much of an event's origin the reader may see.
func (v View) form(e *animalstore.Event) form {
	own := e.KeyID != nil && *e.KeyID == v.KeyID
	switch {
	case e.KeyID == nil && e.RequestID == nil: // there is nothing to hide
		return full
	case own, v.Permissions.Has(animalstore.Admin):
		return full
	case v.Permissions.Has(animalstore.Write):
		return named
	}
	return anonymous
}
