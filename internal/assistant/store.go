package assistant

import (
	"context"
	"slices"
	"strings"

	"animalstore"
	"animalstore/client"
	"animalstore/internal/strictjson"
)

func listOrders(ctx context.Context, api *client.Client, args *strictjson.Arguments) (result, error) {
	q := animalstore.OrderQuery{
		Statuses:  strictjson.Choices(args, "status", animalstore.OrderStatuses),
		PetID:     value(args.Positive("petId")),
		Reference: animalstore.OptionalText(value(args.NonEmpty("reference"))),
		Oldest:    strictjson.Choice(args, "sort", []string{oldest}) != nil,
	}
	var meta client.Meta
	options := page(args, defaultPage, &meta)
	if err := args.Err(); err != nil {
		return result{}, err
	}
	orders, next, err := collect(api.ListOrders(ctx, q, options...), &meta)
	return result{value: struct {
		Orders     []animalstore.Order `json:"orders"`
		NextCursor *string             `json:"nextCursor"`
	}{orders, next}}, err
}

func placeOrder(ctx context.Context, api *client.Client, args *strictjson.Arguments) (result, error) {
	args.Require("petId") // positive, which the API doesn't require
	order, options := strictjson.Decode(args, strictjson.DecodeNewOrder), idempotency(args)
	if err := args.Err(); err != nil {
		return result{}, err
	}
	placed, err := api.PlaceOrder(ctx, order, options...)
	return result{value: placed}, err
}

func changeOrder(ctx context.Context, api *client.Client, args *strictjson.Arguments) (result, error) {
	orderID, patch := args.Require("orderId"), strictjson.Decode(args, strictjson.DecodeOrderPatch)
	if err := args.Err(); err != nil {
		return result{}, err
	}
	order, err := api.UpdateOrder(ctx, orderID, patch)
	return result{value: order}, err
}

func listCategories(ctx context.Context, api *client.Client, args *strictjson.Arguments) (result, error) {
	var meta client.Meta
	options := page(args, defaultPage, &meta)
	if err := args.Err(); err != nil {
		return result{}, err
	}
	categories, next, err := collect(api.ListCategories(ctx, options...), &meta)
	return result{value: struct {
		Categories []animalstore.Category `json:"categories"`
		NextCursor *string                `json:"nextCursor"`
	}{categories, next}}, err
}

func inventory(ctx context.Context, api *client.Client, args *strictjson.Arguments) (result, error) {
	q := animalstore.InventoryQuery{CategoryID: args.Integer("categoryId")}
	if err := args.Err(); err != nil {
		return result{}, err
	}
	counts, err := api.GetInventory(ctx, q)
	return result{value: counts}, err
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

func recentChanges(ctx context.Context, api *client.Client, args *strictjson.Arguments) (result, error) {
	patterns := strictjson.Choices(args, "types", changePatterns)
	if len(patterns) == 0 {
		patterns = changePatterns
	}
	q := animalstore.EventQuery{
		Types:   animalstore.EventPatterns(strings.Join(patterns, ",")),
		Subject: value(args.NonEmpty("subject")),
		PetID:   value(args.Positive("petId")),
		Before:  value(args.Positive("before")),
	}
	q.Newest = q.Before == 0
	limit := pageSize(args, defaultPage)
	if err := args.Err(); err != nil {
		return result{}, err
	}
	events, next, err := api.ListEventPage(ctx, q, limit)
	changes := struct {
		Changes    []animalstore.Event `json:"changes"`
		NextBefore *int64              `json:"nextBefore"`
	}{Changes: events}
	if next > 0 {
		changes.NextBefore = &next
	}
	return result{value: changes}, err
}

func limits(ctx context.Context, api *client.Client, args *strictjson.Arguments) (result, error) {
	if err := args.Err(); err != nil {
		return result{}, err
	}
	status, err := api.GetLimits(ctx)
	return result{value: status}, err
}
