package client

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"animalstore"
)

// PetQuery selects pets. A filter left zero selects nothing out.
type PetQuery struct {
	Status     animalstore.PetStatus
	CategoryID *int64  // new(int64(7)) for category 7: zero is a category, too
	IDs        []int64 // at most 100
	PageSize   int     // see [PageQuery]
}

// ListPets lists pets, the one added last first. Pets that are there all
// the while are listed once each, whatever else changes meanwhile; those added
// meanwhile are not listed.
func (c *Client) ListPets(ctx context.Context, q PetQuery, options ...CallOption) iter.Seq2[animalstore.Pet, error] {
	query := url.Values{}
	if q.Status != "" {
		query.Set("status", string(q.Status))
	}
	if q.CategoryID != nil {
		query.Set("categoryId", decimal(*q.CategoryID))
	}
	if q.IDs != nil {
		ids := make([]string, len(q.IDs))
		for i, id := range q.IDs {
			ids[i] = decimal(id)
		}
		query.Set("id", strings.Join(ids, ","))
	}
	return list(ctx, c, "listPets", "/pets", query, q.PageSize, options, isPet)
}

// FindPet returns one pet by its id. The error has code pet_not_found if
// there is none. It asks the list, as one should instead of [Client.GetPet], so
// the ETag it reads is not one for [IfMatch].
func (c *Client) FindPet(ctx context.Context, id int64, options ...CallOption) (animalstore.Pet, error) {
	if id > 0 { // others the list refuses, and no pet has them
		for pet, err := range c.ListPets(ctx, PetQuery{IDs: []int64{id}}, options...) {
			return pet, err
		}
	}
	return animalstore.Pet{}, fmt.Errorf("findPet: %w", animalstore.Errorf(animalstore.PetNotFound, "there is no pet with id %d", id))
}

// CreatePet adds a pet. However often it has to be sent, it is added once:
// see [IdempotencyKey].
func (c *Client) CreatePet(ctx context.Context, pet animalstore.NewPet, options ...CallOption) (animalstore.Pet, error) {
	k := &call{operation: "createPet", method: http.MethodPost, path: "/pets", body: pet, name: pet.Name, repeat: replayed}
	return send(ctx, c, k, options, isPet)
}

// GetPet returns one pet by its id.
//
// Deprecated: the service removes this operation on 5 December 2030 and then
// answers with code endpoint_removed. Use [Client.FindPet].
func (c *Client) GetPet(ctx context.Context, id int64, options ...CallOption) (animalstore.Pet, error) {
	k := &call{operation: "getPet", method: http.MethodGet, path: petPath(id)}
	return send(ctx, c, k, options, isPet)
}

// PetPatch is what to change of a pet. What is nil stays as it is: write
// PetPatch{Name: new("Rex")}.
type PetPatch struct {
	Name       *string                `json:"name,omitempty"`
	CategoryID *int64                 `json:"categoryId,omitempty"`
	Status     *animalstore.PetStatus `json:"status,omitempty"`
}

// UpdatePet changes a pet and returns it as it is then. To change only what
// you have seen, give [IfMatch].
func (c *Client) UpdatePet(ctx context.Context, id int64, patch PetPatch, options ...CallOption) (animalstore.Pet, error) {
	k := &call{operation: "updatePet", method: http.MethodPatch, path: petPath(id), body: patch, name: textOf(patch.Name), conditional: true}
	return send(ctx, c, k, options, isPet)
}

// DeletePet removes a pet. If an attempt was lost and the next one finds the
// pet gone, that counts as success.
func (c *Client) DeletePet(ctx context.Context, id int64, options ...CallOption) error {
	k := &call{operation: "deletePet", method: http.MethodDelete, path: petPath(id), conditional: true}
	return c.sendOnly(ctx, k, options)
}

func petPath(id int64) string { return "/pets/" + decimal(id) }

func isPet(p *animalstore.Pet) bool { return p.ID > 0 && p.Name != "" && p.Status != "" }

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

func textOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
