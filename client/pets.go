package client

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"animalstore"
)

// ListPets lists pets, newest first, or sorted by name if q has a Name. Pets that exist
// during the whole listing are listed exactly once, regardless of other changes. Pets added
// during it are not listed, except by name, where renamed pets may be missing or listed
// twice.
func (c *Client) ListPets(ctx context.Context, q animalstore.PetQuery, options ...CallOption) iter.Seq2[animalstore.Pet, error] {
	return list(ctx, c, "listPets", "/pets", q.Values(), options, isPet)
}

// FindPet returns one pet by its id. The error has code pet_not_found if it doesn't
// exist, and status 404. FindPet reads the list, which replaces [Client.GetPet], so its
// ETag can't be used for [IfMatch].
func (c *Client) FindPet(ctx context.Context, id int64, options ...CallOption) (animalstore.Pet, error) {
	query := url.Values{"id": {strconv.FormatInt(id, 10)}, "limit": {strconv.Itoa(maxPageSize)}}
	op := operation{name: "findPet", method: http.MethodGet, path: "/pets?" + query.Encode()}
	k := &call{}
	if id > 0 { // the list refuses other ids, which no pet has
		var pets []animalstore.Pet
		var err error
		if pets, k, err = receiveCall(ctx, c, op, options, eachIs(isPet)); err != nil {
			return animalstore.Pet{}, err
		}
		if len(pets) > 0 {
			return pets[0], nil
		}
	}
	return animalstore.Pet{}, &Error{
		Operation: op.name, Request: "GET " + c.urlOf(op.path), Status: http.StatusNotFound, RequestID: k.requestID,
		Err: animalstore.Errorf(animalstore.PetNotFound, "there is no pet with id %d", id),
	}
}

// CreatePet adds a pet. It is added only once, even if the call is retried: see
// [IdempotencyKey].
func (c *Client) CreatePet(ctx context.Context, pet animalstore.NewPet, options ...CallOption) (animalstore.Pet, error) {
	op := operation{name: "createPet", method: http.MethodPost, path: "/pets", body: pet, repeat: replayed}
	return receive(ctx, c, op, options, isPet)
}

// GetPet returns one pet by its id.
//
// Deprecated: the service removes this operation on 5 December 2030. Then the
// error has code endpoint_removed. Use [Client.FindPet].
func (c *Client) GetPet(ctx context.Context, id int64, options ...CallOption) (animalstore.Pet, error) {
	op := operation{name: "getPet", method: http.MethodGet, path: petPath(id)}
	return receive(ctx, c, op, options, isPet)
}

// UpdatePet changes a pet and returns the changed pet. Use [IfMatch] to change it only
// if it is still in the state you read.
func (c *Client) UpdatePet(ctx context.Context, id int64, patch animalstore.PetPatch, options ...CallOption) (animalstore.Pet, error) {
	op := operation{name: "updatePet", method: http.MethodPatch, path: petPath(id), body: patch, conditional: true}
	return receive(ctx, c, op, options, isPet)
}

// DeletePet removes a pet. If an attempt was lost and the next one finds the pet gone,
// that counts as success.
func (c *Client) DeletePet(ctx context.Context, id int64, options ...CallOption) error {
	op := operation{name: "deletePet", method: http.MethodDelete, path: petPath(id), conditional: true}
	return c.receiveNothing(ctx, op, options)
}

func petPath(id int64) string { return fmt.Sprintf("/pets/%d", id) }

func isPet(p *animalstore.Pet) bool { return p.ID > 0 && p.Name != "" && p.Status != "" }
