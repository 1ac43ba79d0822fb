package api

import (
	"context"
	"errors"

	"animalstore"
	"animalstore/internal/db"
)

// resourceKind is a kind of resource that is addressed by its id. It is where
// db.ErrNotFound becomes the error that callers see.
type resourceKind struct {
	code    animalstore.Code // of the error if there is none with that id
	parseID func(string) (int64, bool)
	validID string // what a valid id is
}

var (
	petKind      = resourceKind{animalstore.PetNotFound, parseID, "a positive integer"}
	photoKind    = resourceKind{animalstore.PhotoNotFound, parseID, "a positive integer"}
	orderKind    = resourceKind{animalstore.OrderNotFound, parseID, "a positive integer"}
	keyKind      = resourceKind{animalstore.KeyNotFound, parseID, "a positive integer"}
	webhookKind  = resourceKind{animalstore.WebhookNotFound, parseID, "a positive integer"}
	deliveryKind = resourceKind{animalstore.DeliveryNotFound, parseID, "a positive integer"}
	categoryKind = resourceKind{animalstore.CategoryNotFound, parseInt64, "a 64-bit integer"}
)

// pathID reads the id in the path. One that isn't valid can't exist.
func (k *resourceKind) pathID(r *request) (int64, error) {
	id, ok := k.parseID(r.param)
	if !ok {
		return 0, animalstore.NoSuchID(k.code, k.validID)
	}
	return id, nil
}

// readAtPath reads the resource whose id is in the path.
func readAtPath[T any](r *request, k *resourceKind, read func(context.Context, int64) (T, error)) (T, error) {
	id, err := k.pathID(r)
	if err != nil {
		return *new(T), err
	}
	found, err := read(r.Context(), id)
	return found, k.explain(err, id)
}

// explain turns db.ErrNotFound into the error for a missing resource, and leaves
// every other error alone.
func (k *resourceKind) explain(err error, id int64) error {
	if errors.Is(err, db.ErrNotFound) {
		return animalstore.NotFound(k.code, id)
	}
	return err
}
