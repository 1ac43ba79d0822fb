package assistant

import (
	"context"
	"slices"

	"animalstore"
	"animalstore/client"
	"animalstore/internal/strictjson"
)

func orderTools(schema func(string) object) []tool {
	return []tool{{
		name: "list_orders", title: "List orders", operations: []string{"listOrders"},
		description: "List orders, newest first unless sort is oldest.",
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
		output: replayable(schema("Order")),
		read:   placeOrder,
	}, {
		name: "change_order", title: "Change an order", effect: changes, repeatable: true, operations: []string{"updateOrder"},
		description: "Change an order's status, reference or note; what you leave out stays as it is. The status goes from placed to approved to delivered, or to cancelled from placed or approved. " +
			"Delivering an order makes its pet sold, cancelling it makes the pet available again. Both are final.",
		parameters: []parameter{
			required(id("orderId", "The order's id.")),
			choice("status", nextStatuses, "The new status."),
			nullable("reference", animalstore.MaxReferenceLength, "The new reference, null for none."),
			nullable("note", animalstore.MaxNoteLength, "The new note, null for none."),
		},
		output: schema("Order"),
		read:   changeOrder,
	}}
}

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
	order := strictjson.Decode(args, strictjson.DecodeNewOrder)
	return once(args, func(ctx context.Context, api *client.Client, options callOptions) (animalstore.Order, error) {
		return api.PlaceOrder(ctx, order, options...)
	})
}

// nextStatuses are those that an order can get: it is placed from the start.
var nextStatuses = slices.DeleteFunc(slices.Clone(animalstore.OrderStatuses), func(s animalstore.OrderStatus) bool {
	return s == animalstore.OrderPlaced
})

func changeOrder(args *strictjson.Arguments) request {
	orderID := args.Require("orderId")
	strictjson.Choice(args, "status", nextStatuses)
	patch := strictjson.Decode(args, strictjson.DecodeOrderPatch)
	return func(ctx context.Context, api *client.Client) (any, error) {
		return api.UpdateOrder(ctx, orderID, patch)
	}
}
