package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	"animalstore"
)

// OrderQuery selects orders. A filter left zero selects nothing out.
type OrderQuery struct {
	Status   animalstore.OrderStatus
	PetID    int64
	PageSize int // see [PageQuery]
}

// ListOrders lists orders, the latest first, with the promise of
// [Client.ListPets].
func (c *Client) ListOrders(ctx context.Context, q OrderQuery, options ...CallOption) iter.Seq2[animalstore.Order, error] {
	query := url.Values{}
	if q.Status != "" {
		query.Set("status", string(q.Status))
	}
	if q.PetID != 0 {
		query.Set("petId", decimal(q.PetID))
	}
	return list(ctx, c, "listOrders", "/store/orders", query, q.PageSize, options, isOrder)
}

// PlaceOrder orders a pet, which has to be available and is pending from
// then on. However often it has to be sent, one order is placed: see
// [IdempotencyKey].
func (c *Client) PlaceOrder(ctx context.Context, petID int64, options ...CallOption) (animalstore.Order, error) {
	body := struct {
		PetID int64 `json:"petId"`
	}{petID}
	k := &call{operation: "placeOrder", method: http.MethodPost, path: "/store/orders", body: body, repeat: replayed}
	return send(ctx, c, k, options, isOrder)
}

// GetOrder returns one order.
func (c *Client) GetOrder(ctx context.Context, id int64, options ...CallOption) (animalstore.Order, error) {
	k := &call{operation: "getOrder", method: http.MethodGet, path: orderPath(id)}
	return send(ctx, c, k, options, isOrder)
}

// UpdateOrder moves an order to another status and returns it as it is then. Its
// pet follows. If an attempt was lost and the next one is refused, the error
// is [ErrOutcomeUnknown] as well: the move may have been yours or somebody
// else's, and the order shows only that it was made.
func (c *Client) UpdateOrder(ctx context.Context, id int64, status animalstore.OrderStatus, options ...CallOption) (animalstore.Order, error) {
	body := struct {
		Status animalstore.OrderStatus `json:"status"`
	}{status}
	k := &call{operation: "updateOrder", method: http.MethodPatch, path: orderPath(id), body: body, conditional: true}
	return send(ctx, c, k, options, isOrder)
}

func orderPath(id int64) string { return "/store/orders/" + decimal(id) }

func isOrder(o *animalstore.Order) bool { return o.ID > 0 && o.PetID > 0 && o.Status != "" }
