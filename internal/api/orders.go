package api

import (
	"context"
	"net/http"

	"animalstore"
	"animalstore/internal/strictjson"
)

// listOrders serves GET /v1/store/orders.
func (s *Server) listOrders(w http.ResponseWriter, r *request) error {
	return serveList(w, r, "/v1/store/orders", animalstore.ParseOrderQuery, s.DB.Orders, func(o *animalstore.Order) int64 { return o.ID })
}

// placeOrder serves POST /v1/store/orders.
func (s *Server) placeOrder(w http.ResponseWriter, r *request) error {
	in, err := decode(r, strictjson.DecodeNewOrder)
	if err != nil {
		return err
	}
	idempotency, err := s.idempotency(r, "placeOrder")
	if err != nil {
		return err
	}
	order, replayed, err := s.DB.PlaceOrder(r.Context(), in, animalstore.At(s.Now()), idempotency)
	if err != nil {
		return petKind.notFound(err)
	}
	setReplayed(w, replayed)
	setLocation(w, "/v1/store/orders", order.ID)
	return writeResource(w, r, http.StatusCreated, order)
}

// getOrder serves GET /v1/store/orders/{orderId}.
func (s *Server) getOrder(w http.ResponseWriter, r *request) error {
	return serveAtPath(w, r, &orderKind, s.DB.Order)
}

// updateOrder serves PATCH /v1/store/orders/{orderId}.
func (s *Server) updateOrder(w http.ResponseWriter, r *request) error {
	patch, err := decode(r, strictjson.DecodeOrderPatch)
	if err != nil {
		return err
	}
	return serveAtPath(w, r, &orderKind, func(ctx context.Context, id int64) (animalstore.Order, error) {
		return s.DB.UpdateOrder(ctx, id, func(o *animalstore.Order) error {
			if err := r.checkIfMatch(etagOf(encode(o))); err != nil {
				return err
			}
			return patch.Apply(o, animalstore.At(s.Now()))
		})
	})
}
