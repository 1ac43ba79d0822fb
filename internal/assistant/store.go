package assistant

import (
	"context"
	"slices"
	"strings"

	"animalstore"
	"animalstore/client"
	"animalstore/internal/strictjson"
)

func listOrders(args *strictjson.Arguments) request {
	q := animalstore.OrderQuery{
		Statuses:  strictjson.Choices(args, "status", animalstore.OrderStatuses),
		PetID:     value(args.Positive("petId")),
		Reference: animalstore.OptionalText(value(args.NonEmpty("reference"))),
		Oldest:    strictjson.Choice(args, "sort", []string{oldest}) != nil,
	}
	var meta client.Meta
	options := page(args, defaultPage, &meta)
	return func(ctx context.Context, api *client.Client) (any, error) {
		return pageOf("orders", api.ListOrders(ctx, q, options...), &meta)
	}
}

func placeOrder(args *strictjson.Arguments) request {
	args.Require("petId") // positive, which the API doesn't require
	order, options := strictjson.Decode(args, strictjson.DecodeNewOrder), idempotency(args)
	return func(ctx context.Context, api *client.Client) (any, error) {
		return api.PlaceOrder(ctx, order, options...)
	}
}

func changeOrder(args *strictjson.Arguments) request {
	orderID, patch := args.Require("orderId"), strictjson.Decode(args, strictjson.DecodeOrderPatch)
	return func(ctx context.Context, api *client.Client) (any, error) {
		return api.UpdateOrder(ctx, orderID, patch)
	}
}

func listCategories(args *strictjson.Arguments) request {
	var meta client.Meta
	options := page(args, defaultPage, &meta)
	return func(ctx context.Context, api *client.Client) (any, error) {
		return pageOf("categories", api.ListCategories(ctx, options...), &meta)
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
	}
	q.Newest = q.Before == 0
	limit := pageSize(args, defaultPage)
	return func(ctx context.Context, api *client.Client) (any, error) {
		events, next, err := api.ListEventPage(ctx, q, limit)
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
