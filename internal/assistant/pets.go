package assistant

import (
	"context"
	"iter"
	"slices"

	"animalstore"
	"animalstore/client"
	"animalstore/internal/strictjson"
)

// pageSize is the number of entries of a page.
func pageSize(args *strictjson.Arguments, fallback int) int {
	if n := args.Positive("limit"); n != nil {
		return int(*n)
	}
	return fallback
}

// page are the options for the page of a list that begins at the argument cursor.
func page(args *strictjson.Arguments, entries int, meta *client.Meta) []client.CallOption {
	return []client.CallOption{
		client.PageSize(pageSize(args, entries)), client.FromCursor(value(args.String("cursor"))), client.OnePage(), client.ReadMeta(meta),
	}
}

// collect returns the entries of a list, and where it goes on.
func collect[T any](list iter.Seq2[T, error], meta *client.Meta) (entries []T, next *string, err error) {
	entries = []T{} // not null
	for entry, err := range list {
		if err != nil {
			return nil, nil, err
		}
		entries = append(entries, entry)
	}
	if meta.NextCursor != "" {
		next = &meta.NextCursor
	}
	return entries, next, nil
}

// value returns what p points to, or the zero value.
func value[T any](p *T) T {
	if p == nil {
		return *new(T)
	}
	return *p
}

// idempotency is the option for the argument idempotencyKey. Without it, the client makes
// one for its own retries.
func idempotency(args *strictjson.Arguments) []client.CallOption {
	if key := args.String("idempotencyKey"); key != nil {
		return []client.CallOption{client.IdempotencyKey(*key)}
	}
	return nil
}

func findPets(ctx context.Context, api *client.Client, args *strictjson.Arguments) (result, error) {
	q := animalstore.PetQuery{
		Name:       value(args.NonEmpty("name")),
		Status:     value(strictjson.Choice(args, "status", animalstore.PetStatuses)),
		CategoryID: args.Integer("categoryId"),
		IDs:        args.Integers("ids"),
	}
	entries := defaultPage
	if q.IDs != nil {
		entries = maxPage // all of them
	}
	var meta client.Meta
	options := page(args, entries, &meta)
	if err := args.Err(); err != nil {
		return result{}, err
	}
	pets, next, err := collect(api.ListPets(ctx, q, options...), &meta)
	return result{value: struct {
		Pets       []animalstore.Pet `json:"pets"`
		NextCursor *string           `json:"nextCursor"`
	}{pets, next}}, err
}

func addPet(ctx context.Context, api *client.Client, args *strictjson.Arguments) (result, error) {
	pet := strictjson.Decode(args, strictjson.DecodeNewPet)
	options := idempotency(args)
	if err := args.Err(); err != nil {
		return result{}, err
	}
	added, err := api.CreatePet(ctx, pet, options...)
	return result{value: added}, err
}

func changePet(ctx context.Context, api *client.Client, args *strictjson.Arguments) (result, error) {
	petID, patch := args.Require("petId"), strictjson.Decode(args, strictjson.DecodePetPatch)
	if err := args.Err(); err != nil {
		return result{}, err
	}
	pet, err := api.UpdatePet(ctx, petID, patch)
	return result{value: pet}, err
}

func removePet(ctx context.Context, api *client.Client, args *strictjson.Arguments) (result, error) {
	petID := args.Require("petId")
	if err := args.Err(); err != nil {
		return result{}, err
	}
	return result{value: struct {
		Removed int64 `json:"removed"`
	}{petID}}, api.DeletePet(ctx, petID)
}

func petPhoto(ctx context.Context, api *client.Client, args *strictjson.Arguments) (result, error) {
	petID, photoID := args.Require("petId"), args.Positive("photoId")
	if err := args.Err(); err != nil {
		return result{}, err
	}
	var meta client.Meta
	photos, _, err := collect(api.ListPhotos(ctx, animalstore.PhotoQuery{PetIDs: []int64{petID}}, client.OnePage()), &meta)
	if err != nil {
		return result{}, err
	}
	if photoID == nil && len(photos) > 0 {
		photoID = &photos[0].ID
	}
	shown := result{value: struct {
		Photos []animalstore.Photo `json:"photos"`
		Shown  *int64              `json:"shown"`
	}{photos, photoID}}
	if photoID == nil {
		return shown, nil
	}
	if !slices.ContainsFunc(photos, func(p animalstore.Photo) bool { return p.ID == *photoID }) {
		return result{}, &client.Error{Status: 404, Err: animalstore.Errorf(animalstore.PhotoNotFound, "this pet has no photo with this id")}
	}
	image, err := api.GetThumbnail(ctx, *photoID)
	shown.image = &image
	return shown, err
}
