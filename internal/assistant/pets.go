package assistant

import (
	"context"
	"slices"

	"animalstore"
	"animalstore/client"
	"animalstore/internal/strictjson"
)

func petTools(schema func(string) object) []tool {
	return []tool{{
		name: "find_pets", title: "Find pets", operations: []string{"listPets"},
		description: "Find pets by any of name, status, category and id. Without arguments it lists all pets, newest first. " +
			"A page may have fewer pets than limit, or none, although there are more: go on until nextCursor is null.",
		parameters: []parameter{
			text("name", maxSearch, "The beginning of any of the first four words of the pet's name, and any words after it, "+
				"ignoring case and punctuation between words. Not together with ids."),
			choice("status", animalstore.PetStatuses, "Only pets with this status. Only available pets can be ordered."),
			integer("categoryId", "Only pets in the category with this id."),
			ids("ids", "id", "Only the pets with these ids."),
			limitParameter, cursorParameter,
		},
		output: output(object{"pets": listOf(schema("Pet")), "nextCursor": nextCursor}),
		read:   findPets,
	}, {
		name: "add_pet", title: "Add a pet", effect: changes, operations: []string{"createPet"},
		description: "Add a pet to the store and return it with its id.",
		parameters:  append(slices.Clone(newPetParameters), idempotencyParameter),
		output:      replayable(schema("Pet")),
		read:        addPet,
	}, {
		name: "add_pets", title: "Add several pets", effect: changes, operations: []string{"createPetBatch"},
		description: "Add up to 100 pets at once, all or none, and return them with their ids, in the same order.",
		parameters: []parameter{
			required(objects("pets", animalstore.MaxPetBatch, "The pets.", newPetParameters...)),
			idempotencyParameter,
		},
		output: replayable(output(object{"pets": listOf(schema("Pet"))})),
		read:   addPets,
	}, {
		name: "change_pet", title: "Change a pet", effect: changes, repeatable: true, operations: []string{"updatePet"},
		description: "Change a pet's name, category or status and return the changed pet. What you leave out stays as it is. " +
			"A sold pet stays sold, and the status of a pet with an open order changes only with its order.",
		parameters: []parameter{
			petParameter,
			text("name", animalstore.MaxNameLength, "The new name."), newCategoryParameter,
			choice("status", animalstore.PetStatuses, "The new status."),
		},
		output: schema("Pet"),
		read:   changePet,
	}, {
		name: "remove_pet", title: "Remove a pet", effect: destroys, repeatable: true, operations: []string{"deletePet"},
		description: "Remove a pet and its photos from the store. This can't be undone. A pet with an open order can't be removed.",
		parameters:  []parameter{petParameter},
		output:      output(object{"removed": object{"type": "integer", "description": "The id of the pet that was removed."}}),
		read:        removePet,
	}, {
		name: "pet_photo", title: "Show a pet's photo", operations: []string{"listPhotos", "listPets", "getThumbnail"},
		description: "Show a small image of a pet: its oldest photo, or another one. Also lists all photos of the pet.",
		parameters:  []parameter{petParameter, id("photoId", "Which of the pet's photos to show, the oldest if left out.")},
		output: output(object{
			"photos": listOf(schema("Photo")),
			"shown": object{"type": []string{"integer", "null"},
				"description": "The id of the photo that is shown, null if the pet has none."},
		}),
		read: petPhoto,
	}}
}

// newPetParameters describe a pet to add.
var newPetParameters = []parameter{required(petNameParameter), required(categoryParameter), petStatusParameter}

func findPets(args *strictjson.Arguments) request {
	q := animalstore.PetQuery{
		Name:       value(args.NonEmpty("name")),
		Status:     value(strictjson.Choice(args, "status", animalstore.PetStatuses)),
		CategoryID: args.Integer("categoryId"),
		IDs:        args.Integers("ids", maxPage),
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
	pet := strictjson.Decode(args, strictjson.DecodeNewPet)
	return once(args, func(ctx context.Context, api *client.Client, options callOptions) (animalstore.Pet, error) {
		return api.CreatePet(ctx, pet, options...)
	})
}

func addPets(args *strictjson.Arguments) request {
	args.CheckItems("pets", parameterNames(newPetParameters))
	batch := strictjson.Decode(args, strictjson.DecodeNewPetBatch)
	return once(args, func(ctx context.Context, api *client.Client, options callOptions) (animalstore.PetBatch, error) {
		pets, err := api.CreatePetBatch(ctx, batch.Pets, options...)
		return animalstore.PetBatch{Pets: pets}, err
	})
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
		if len(photos) == 0 {
			if _, err := api.FindPet(ctx, petID); err != nil {
				return nil, err
			}
		} else if photoID == nil {
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
