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

// pageOf is a result with the entries of a list in the field name, and where it goes on.
func pageOf[T any](name string, list iter.Seq2[T, error], meta *client.Meta) (object, error) {
	entries, err := collect(list)
	result := object{name: entries, "nextCursor": nil}
	if meta.NextCursor != "" {
		result["nextCursor"] = meta.NextCursor
	}
	return result, err
}

// collect returns the entries of a list.
func collect[T any](list iter.Seq2[T, error]) ([]T, error) {
	entries := []T{} // not null
	for entry, err := range list {
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry)
	}
	return entries, nil
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

func findPets(args *strictjson.Arguments) request {
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
	return func(ctx context.Context, api *client.Client) (any, error) {
		return pageOf("pets", api.ListPets(ctx, q, options...), &meta)
	}
}

func addPet(args *strictjson.Arguments) request {
	pet, options := strictjson.Decode(args, strictjson.DecodeNewPet), idempotency(args)
	return func(ctx context.Context, api *client.Client) (any, error) {
		return api.CreatePet(ctx, pet, options...)
	}
}

func changePet(args *strictjson.Arguments) request {
	petID, patch := args.Require("petId"), strictjson.Decode(args, strictjson.DecodePetPatch)
	return func(ctx context.Context, api *client.Client) (any, error) {
		return api.UpdatePet(ctx, petID, patch)
	}
}

func removePet(args *strictjson.Arguments) request {
	petID := args.Require("petId")
	return func(ctx context.Context, api *client.Client) (any, error) {
		return object{"removed": petID}, api.DeletePet(ctx, petID)
	}
}

// shownPhoto is the result of petPhoto. It also has the image itself.
type shownPhoto struct {
	Photos []animalstore.Photo `json:"photos"`
	Shown  *int64              `json:"shown"`
	image  client.Image
}

func petPhoto(args *strictjson.Arguments) request {
	petID, photoID := args.Require("petId"), args.Positive("photoId")
	return func(ctx context.Context, api *client.Client) (any, error) {
		photos, err := collect(api.ListPhotos(ctx, animalstore.PhotoQuery{PetIDs: []int64{petID}}, client.OnePage()))
		if err != nil {
			return nil, err
		}
		if photoID == nil && len(photos) > 0 {
			photoID = &photos[0].ID
		}
		shown := shownPhoto{Photos: photos, Shown: photoID}
		if photoID == nil {
			return shown, nil
		}
		if !slices.ContainsFunc(photos, func(p animalstore.Photo) bool { return p.ID == *photoID }) {
			missing := animalstore.Errorf(animalstore.PhotoNotFound, "this pet has no photo with this id")
			return nil, &client.Error{Status: 404, Err: missing}
		}
		shown.image, err = api.GetThumbnail(ctx, *photoID)
		return shown, err
	}
}
