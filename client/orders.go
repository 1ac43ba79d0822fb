package client

import (
	"context"
	"fmt"
	"iter"
	"net/http"

	"animalstore"
)

// ListOrders lists orders, newest first unless q says otherwise, with the guarantee of
// [Client.ListPets].
func (c *Client) ListOrders(ctx context.Context, q animalstore.OrderQuery, options ...CallOption) iter.Seq2[animalstore.Order, error] {
	return list(ctx, c, "listOrders", "/store/orders", q.Values(), options, isOrder)
}

// PlaceOrder orders a pet, which must be available and becomes pending. Only one
// order is placed, even if the call is retried: see [IdempotencyKey].
func (c *Client) PlaceOrder(ctx context.Context, order animalstore.NewOrder, options ...CallOption) (animalstore.Order, error) {
	op := operation{name: "placeOrder", method: http.MethodPost, path: "/store/orders", body: order, repeat: replayed}
	return receive(ctx, c, op, options, isOrder)
}

// GetOrder returns one order.
func (c *Client) GetOrder(ctx context.Context, id int64, options ...CallOption) (animalstore.Order, error) {
	op := operation{name: "getOrder", method: http.MethodGet, path: orderPath(id)}
	return receive(ctx, c, op, options, isOrder)
}

// UpdateOrder changes an order and returns the changed order. If its status changes, so
// does that of its pet. If an attempt was lost and the next one is refused, the error is
// also [ErrOutcomeUnknown]: the order shows that it was changed, but not by whom.
func (c *Client) UpdateOrder(ctx context.Context, id int64, patch animalstore.OrderPatch, options ...CallOption) (animalstore.Order, error) {
	op := operation{name: "updateOrder", method: http.MethodPatch, path: orderPath(id), body: patch, conditional: true}
	return receive(ctx, c, op, options, isOrder)
}

func orderPath(id int64) string { return fmt.Sprintf("/store/orders/%d", id) }

func isOrder(o *animalstore.Order) bool { return o.ID > 0 && o.PetID > 0 && o.Status != "" }
