package assistant

import (
	"context"
	"slices"
	"sync"

	"animalstore"
	"animalstore/client"
	"animalstore/internal/strictjson"
)

// tool is what an assistant can do with the store.
type tool struct {
	name        string
	title       string
	description string
	effect      effect
	repeatable  bool     // calling it again with the same arguments changes nothing more
	operations  []string // of the API that it calls, by their operationId
	parameters  []parameter
	output      object
	read        func(args *strictjson.Arguments) request
}

// effect is what a tool does to the store.
type effect int

const (
	reads effect = iota
	changes
	destroys
)

// request is a call of a tool whose arguments are valid. It returns the result.
type request func(ctx context.Context, api *client.Client) (any, error)

const (
	maxPage         = 100 // entries
	defaultPage     = 20
	maxSearch       = 100 // characters
	oldest          = "oldest"
	maxIdempotency  = 255
	maxCursorLength = 2048
)

// These parameters are the same in several tools.
var (
	limitParameter = parameter{name: "limit", schema: object{
		"type": "integer", "minimum": 1, "maximum": maxPage, "default": defaultPage, "description": "How many to return at most.",
	}}
	cursorParameter      = parameter{name: "cursor", schema: object{"type": "string", "maxLength": maxCursorLength, "description": "The nextCursor of the page before. Leave it out for the first page."}}
	petParameter         = required(id("petId", "The pet's id."))
	idempotencyParameter = text("idempotencyKey", maxIdempotency, "Optional: any text without spaces that is new for each thing you want done. "+
		"If you repeat a call with the same key and arguments, for example because its result was lost, it isn't done twice.")
	petNameParameter     = text("name", animalstore.MaxNameLength, "The pet's name.")
	categoryParameter    = integer("categoryId", "The id of the pet's category. Any integer is valid; list_categories shows those in use.")
	newCategoryParameter = integer("categoryId", "The id of the new category.")
)

// tools are all tools, in the order in which they are listed.
var tools = sync.OnceValue(func() []tool {
	schema := resources()
	return slices.Concat(petTools(schema), orderTools(schema), storeTools(schema))
})

func petTools(schema func(string) object) []tool {
	return []tool{{
		name: "find_pets", title: "Find pets", operations: []string{"listPets"},
		description: "Find pets by any of name, status, category and id. Without arguments it lists all pets, the newest first. " +
			"A page may have fewer pets than limit, or none, although there are more: go on until nextCursor is null.",
		parameters: []parameter{
			text("name", maxSearch, "The beginning of a word in the pet's name, ignoring case. Not together with ids."),
			choice("status", animalstore.PetStatuses, "Only pets with this status. Only available pets can be ordered."),
			integer("categoryId", "Only pets in the category with this id."),
			ids("ids", "Only the pets with these ids."),
			limitParameter, cursorParameter,
		},
		output: output(object{"pets": listOf(schema("Pet")), "nextCursor": nextCursor}),
		read:   findPets,
	}, {
		name: "add_pet", title: "Add a pet", effect: changes, operations: []string{"createPet"},
		description: "Add a pet to the store and return it with its id.",
		parameters: []parameter{
			required(petNameParameter), required(categoryParameter),
			choice("status", animalstore.PetStatuses, "The pet's status, available if left out."),
			idempotencyParameter,
		},
		output: schema("Pet"),
		read:   addPet,
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
		name: "pet_photo", title: "Show a pet's photo", operations: []string{"listPhotos", "getThumbnail"},
		description: "Show a small image of a pet: its oldest photo, or another one. Also lists all photos of the pet.",
		parameters:  []parameter{petParameter, id("photoId", "Which of the pet's photos to show, the oldest if left out.")},
		output: output(object{
			"photos": listOf(schema("Photo")),
			"shown":  object{"type": []string{"integer", "null"}, "description": "The id of the photo that is shown, null if the pet has none."},
		}),
		read: petPhoto,
	}}
}

func orderTools(schema func(string) object) []tool {
	return []tool{{
		name: "list_orders", title: "List orders", operations: []string{"listOrders"},
		description: "List orders, the newest first unless sort is oldest.",
		parameters: []parameter{
			choices("status", animalstore.OrderStatuses, "Only orders with one of these statuses. Placed and approved orders are open."),
			id("petId", "Only orders for the pet with this id."),
			text("reference", animalstore.MaxReferenceLength, "Only orders with exactly this reference."),
			choice("sort", []string{oldest}, "Leave it out for the newest orders first."),
			limitParameter, cursorParameter,
		},
		output: output(object{"orders": listOf(schema("Order")), "nextCursor": nextCursor}),
		read:   listOrders,
	}, {
		name: "place_order", title: "Place an order", effect: changes, operations: []string{"placeOrder"},
		description: "Order an available pet, which becomes pending. Of several orders for one pet, only one succeeds.",
		parameters: []parameter{
			petParameter,
			nullable("reference", animalstore.MaxReferenceLength, "The shop's own number for the order."),
			nullable("note", animalstore.MaxNoteLength, "A note about the order."),
			idempotencyParameter,
		},
		output: schema("Order"),
		read:   placeOrder,
	}, {
		name: "change_order", title: "Change an order", effect: changes, repeatable: true, operations: []string{"updateOrder"},
		description: "Change an order's status, reference or note; what you leave out stays as it is. The status goes from placed to approved to delivered, or to cancelled from placed or approved. " +
			"Delivering an order makes its pet sold, cancelling it makes the pet available again. Both are final.",
		parameters: []parameter{
			required(id("orderId", "The order's id.")),
			choice("status", animalstore.OrderStatuses, "The new status."),
			nullable("reference", animalstore.MaxReferenceLength, "The new reference, null for none."),
			nullable("note", animalstore.MaxNoteLength, "The new note, null for none."),
		},
		output: schema("Order"),
		read:   changeOrder,
	}}
}

func storeTools(schema func(string) object) []tool {
	return []tool{{
		name: "list_categories", title: "List categories", operations: []string{"listCategories"},
		description: "List the categories of pets, with their names, by id.",
		parameters:  []parameter{limitParameter, cursorParameter},
		output:      output(object{"categories": listOf(schema("Category")), "nextCursor": nextCursor}),
		read:        listCategories,
	}, {
		name: "inventory", title: "Count pets", operations: []string{"getInventory"},
		description: "Count the pets in each status, in the whole store or in one category. The counts may be a few seconds old.",
		parameters:  []parameter{integer("categoryId", "Only pets in the category with this id.")},
		output:      schema("Inventory"),
		read:        inventory,
	}, {
		name: "recent_changes", title: "Show recent changes", operations: []string{"listEvents"},
		description: "List what changed in the store, the newest change first: pets, photos, orders and categories. " +
			"Each change has the resource as it was right after it, or right before it was removed.",
		parameters: []parameter{
			choices("types", changePatterns, "Only changes of these types. pet.* means all changes of pets."),
			id("petId", "Only changes of the pet with this id, its photos and its orders. Not together with subject."),
			{name: "subject", schema: object{"type": "string", "pattern": "^(pet|photo|order|category)/-?[0-9]+$", "description": "Only changes of this resource, such as order/9."}},
			id("before", "The nextBefore of the page before. Leave it out for the newest changes."),
			limitParameter,
		},
		output: output(object{
			"changes": listOf(schema("Event")),
			"nextBefore": object{
				"type": []string{"integer", "null"}, "description": "To get earlier changes, call again with the same arguments and this as before. Null if there are none.",
			},
		}),
		read: recentChanges,
	}, {
		name: "limits", title: "Show the limits", operations: []string{"getLimits"},
		description: "Show how many requests the API key may still make this minute and today. Each call of a tool counts as at least one.",
		output:      schema("Limits"),
		read:        limits,
	}}
}
