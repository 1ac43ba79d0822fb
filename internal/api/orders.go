package api

import (
	"net/http"
	"strconv"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/strictjson"
)

// listOrders serves GET /v1/store/orders.
func (s *Server) listOrders(w http.ResponseWriter, r *request) error {
	q, err := parseListQuery("/v1/store/orders", r.URL.RawQuery, "petId", "status")
	if err != nil {
		return err
	}
	status, err := filterOneOf(q, "status", animalstore.OrderStatuses)
	if err != nil {
		return err
	}
	petID, err := idFilter(q, "petId")
	if err != nil {
		return err
	}
	before, err := q.positiveID()
	if err != nil {
		return err
	}
	orders, err := s.db.Orders(r.Context(), db.OrderQuery{Status: status, PetID: petID, Before: before, Limit: q.limit + 1})
	if err != nil {
		return err
	}
	return writePage(w, r, q, orders, func(o *animalstore.Order) int64 { return o.ID })
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
	order, replayed, err := s.db.PlaceOrder(r.Context(), in.PetID, animalstore.At(s.now()), idempotency)
	if err != nil {
		return petKind.explain(err, in.PetID)
	}
	setReplayed(w, replayed)
	setHeader(w, "Location", "/v1/store/orders/"+strconv.FormatInt(order.ID, 10))
	return writeResource(w, r, http.StatusCreated, order)
}

// getOrder serves GET /v1/store/orders/{orderId}.
func (s *Server) getOrder(w http.ResponseWriter, r *request) error {
	order, err := readAtPath(r, &orderKind, s.db.Order)
	if err != nil {
		return err
	}
	return writeResource(w, r, http.StatusOK, order)
}

// updateOrder serves PATCH /v1/store/orders/{orderId}.
func (s *Server) updateOrder(w http.ResponseWriter, r *request) error {
	patch, err := decodePatch(r, strictjson.DecodeOrderPatch)
	if err != nil {
		return err
	}
	if err := patch.Validate(); err != nil {
		return err
	}
	id, err := orderKind.pathID(r)
	if err != nil {
		return err
	}
	order, err := s.db.UpdateOrder(r.Context(), id, func(o *animalstore.Order) error {
		if err := r.checkIfMatch(etagOf(encode(o))); err != nil {
			return err
		}
		return patch.Apply(o, animalstore.At(s.now()))
	})
	if err != nil {
		return orderKind.explain(err, id)
	}
	return writeResource(w, r, http.StatusOK, order)
}
