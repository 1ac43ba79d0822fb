package assistant

import (
	"context"
	"slices"
	"strings"

	"animalstore"
	"animalstore/client"
	"animalstore/internal/strictjson"
)

func storeTools(schema func(string) object) []tool {
	return []tool{{
		name: "list_categories", title: "List categories", operations: []string{"listCategories"},
		description: "List the categories of pets, with their names, by id.",
		parameters:  []parameter{limitParameter, cursorParameter},
		output:      output(object{"categories": listOf(schema("Category")), "nextCursor": nextCursor}),
		read:        listCategories,
	}, {
		name: "name_category", title: "Name a category", effect: changes, repeatable: true, operations: []string{"putCategory"},
		description: "Set the name of a category. If there is no category with this id, it is created.",
		parameters: []parameter{
			required(integer("categoryId", "The category's id.")),
			required(text("name", animalstore.MaxNameLength, "The category's new name.")),
		},
		output: schema("Category"),
		read:   nameCategory,
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
			{name: "subject", schema: object{"type": "string", "pattern": "^(pet|photo|order|category)/-?[0-9]+$",
				"description": "Only changes of this resource, such as order/9."}},
			{name: "since", schema: object{"type": "string", "format": "date-time",
				"description": "Only changes at or after this time, such as 2026-11-15T10:00:00Z."}},
			id("before", "The nextBefore of the page before. Leave it out for the newest changes."),
			limitParameter,
		},
		output: output(object{
			"changes": listOf(schema("Event")),
			"nextBefore": object{
				"type":        []string{"integer", "null"},
				"description": "To get earlier changes, call again with the same arguments and this as before. Null if there are none.",
			},
		}),
		read: recentChanges,
	}, {
		name: "limits", title: "Show the limits", operations: []string{"getLimits"},
		description: "Show how many requests the API key may still make this minute and today, and what it may do. Each call of a tool counts as at least one.",
		output:      schema("Limits"),
		read:        limits,
	}}
}

func listCategories(args *strictjson.Arguments) request {
	var meta client.Meta
	options := page(args, defaultPage, &meta)
	return func(ctx context.Context, api *client.Client) (any, error) {
		return pageOf("categories", api.ListCategories(ctx, options...), &meta)
	}
}

func nameCategory(args *strictjson.Arguments) request {
	categoryID := args.RequireInteger("categoryId")
	category := strictjson.Decode(args, strictjson.DecodeCategory)
	category.ID = categoryID
	return func(ctx context.Context, api *client.Client) (any, error) {
		return api.PutCategory(ctx, category)
	}
}

func inventory(args *strictjson.Arguments) request {
	q := animalstore.InventoryQuery{CategoryID: args.Integer("categoryId")}
	return func(ctx context.Context, api *client.Client) (any, error) {
		return api.GetInventory(ctx, q)
	}
}

// changePatterns select the events that assistants may see: keys and webhooks are none of
// their business, even with an admin key.
var changePatterns = func() (patterns []string) {
	for _, t := range animalstore.EventTypes {
		if t.Permission() == animalstore.Admin {
			continue
		}
		if all := t.Resource() + ".*"; !slices.Contains(patterns, all) {
			patterns = append(patterns, all)
		}
		patterns = append(patterns, string(t))
	}
	return patterns
}()

func recentChanges(args *strictjson.Arguments) request {
	patterns := strictjson.Choices(args, "types", changePatterns)
	if len(patterns) == 0 {
		patterns = changePatterns
	}
	q := animalstore.EventQuery{
		Types:   animalstore.EventPatterns(strings.Join(patterns, ",")),
		Subject: value(args.NonEmpty("subject")),
		PetID:   value(args.Positive("petId")),
		Before:  value(args.Positive("before")),
		Since:   args.Time("since"),
	}
	q.Newest = q.Before == 0
	limit := pageSize(args, defaultPage)
	return func(ctx context.Context, api *client.Client) (any, error) {
		events, next, err := api.ListEventPage(ctx, q, limit)
		// The list ends up to a minute before the time.
		events = slices.DeleteFunc(events, func(e animalstore.Event) bool { return e.Time.Before(q.Since.Time) })
		result := object{"changes": events, "nextBefore": nil}
		if next > 0 {
			result["nextBefore"] = next
		}
		return result, err
	}
}

func limits(*strictjson.Arguments) request {
	return func(ctx context.Context, api *client.Client) (any, error) {
		return api.GetLimits(ctx)
	}
}
