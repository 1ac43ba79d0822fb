package api

import (
	"context"
	"errors"
	"net/http"

	"animalstore"
	"animalstore/internal/db"
)

// resourceKind is a kind of resource that is addressed by its id. It is where
// db.ErrNotFound becomes the error that callers see.
type resourceKind struct {
	name    string
	code    animalstore.Code // of the error if there is none with that id
	parseID func(string) (int64, bool)
	validID string // what a valid id is
}

var (
	petKind      = resourceKind{"pet", animalstore.PetNotFound, animalstore.ParseID, "a positive integer"}
	photoKind    = resourceKind{"photo", animalstore.PhotoNotFound, animalstore.ParseID, "a positive integer"}
	orderKind    = resourceKind{"order", animalstore.OrderNotFound, animalstore.ParseID, "a positive integer"}
	keyKind      = resourceKind{"key", animalstore.KeyNotFound, animalstore.ParseID, "a positive integer"}
	webhookKind  = resourceKind{"webhook", animalstore.WebhookNotFound, animalstore.ParseID, "a positive integer"}
	deliveryKind = resourceKind{"delivery", animalstore.DeliveryNotFound, animalstore.ParseID, "a positive integer"}
	categoryKind = resourceKind{"category", animalstore.CategoryNotFound, animalstore.ParseInteger, "a 64-bit integer"}
)

// id reads an id. One that isn't valid can't exist.
func (k *resourceKind) id(text string) (int64, error) {
	id, ok := k.parseID(text)
	if !ok {
		return 0, animalstore.Errorf(k.code, "there is no such %s: an id is %s", k.name, k.validID)
	}
	return id, nil
}

// pathID reads the id in the path.
func (k *resourceKind) pathID(r *request) (int64, error) { return k.id(r.param) }

// atPath calls a method of the database with the id in the path. The errors of that id
// become those that callers see.
func atPath[T any](r *request, k *resourceKind, call func(context.Context, int64) (T, error)) (T, error) {
	id, err := k.pathID(r)
	if err != nil {
		return *new(T), err
	}
	result, err := call(r.Context(), id)
	return result, k.notFound(err)
}

// serveAtPath is atPath for a handler whose response is the result.
func serveAtPath[T any](w http.ResponseWriter, r *request, k *resourceKind, call func(context.Context, int64) (T, error)) error {
	result, err := atPath(r, k, call)
	if err != nil {
		return err
	}
	return writeResource(w, r, http.StatusOK, result)
}

// deleteAtPath is atPath for a handler that removes something.
func deleteAtPath(w http.ResponseWriter, r *request, k *resourceKind, remove func(context.Context, int64) error) error {
	_, err := atPath(r, k, func(ctx context.Context, id int64) (struct{}, error) { return struct{}{}, remove(ctx, id) })
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// notFound turns db.ErrNotFound into the error for a missing resource, and leaves
// every other error alone.
func (k *resourceKind) notFound(err error) error {
	if errors.Is(err, db.ErrNotFound) {
		return animalstore.Errorf(k.code, "there is no %s with this id", k.name)
	}
	return err
}
