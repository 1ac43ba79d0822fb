package api

import (
	"errors"

	"animalstore"
	"animalstore/internal/db"
)

// resourceKind is a kind of resource that is addressed by its id. It is where
// db.ErrNotFound becomes the error that callers see.
type resourceKind struct {
	name    string
	code    animalstore.Code // of the error when there is none with that id
	parseID func(string) (int64, bool)
	idType  string // what a valid id is
}

var (
	petKind      = resourceKind{"pet", animalstore.PetNotFound, parseID, "a positive integer"}
	orderKind    = resourceKind{"order", animalstore.OrderNotFound, parseID, "a positive integer"}
	keyKind      = resourceKind{"key", animalstore.KeyNotFound, parseID, "a positive integer"}
	categoryKind = resourceKind{"category", animalstore.CategoryNotFound, parseInt64, "a 64-bit integer"}
)

// pathID reads the id in the path. One that isn't valid can't exist.
func (k *resourceKind) pathID(r *request) (int64, error) {
	id, ok := k.parseID(r.param)
	if !ok {
		return 0, animalstore.Errorf(k.code, "there is no such %s: an id is %s", k.name, k.idType)
	}
	return id, nil
}

// explain turns db.ErrNotFound into the error for a missing resource, and leaves
// every other error alone.
func (k *resourceKind) explain(err error, id int64) error {
	if errors.Is(err, db.ErrNotFound) {
		return animalstore.Errorf(k.code, "there is no %s with id %d", k.name, id)
	}
	return err
}
