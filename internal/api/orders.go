package api

import (
	"net/http"
	"strconv"

	"animalstore"
	"animalstore/internal/db"
)

// listOrders serves GET /v1/store/orders.
func (s *Server) listOrders(w http.ResponseWriter, r *request) error {
	q, err := parseListQuery("/v1/store/orders", r.URL.RawQuery, "petId", "status")
	if err != nil {
		return err
	}
	status, err := statusFilter(q, animalstore.ParseOrderStatus, animalstore.OrderStatuses)
	if err != nil {
		return err
	}
	petID, err := idFilter(q, "petId")
	if err != nil {
		return err
	}
	before, err := q.before()
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
	var petID int64
	if err := decode(r, required("petId", readInt64(&petID))); err != nil {
		return err
	}
	once, err := s.once(r, "placeOrder")
	if err != nil {
		return err
	}
	order, replayed, err := s.db.PlaceOrder(r.Context(), petID, animalstore.At(s.now()), once)
	if err != nil {
		return err
	}
	tellReplay(w, replayed)
	w.Header()["Location"] = []string{"/v1/store/orders/" + strconv.FormatInt(order.ID, 10)}
	return writeResource(w, r, http.StatusCreated, order)
}

// getOrder serves GET /v1/store/orders/{orderId}.
func (s *Server) getOrder(w http.ResponseWriter, r *request) error {
	id, err := orderID(r)
	if err != nil {
		return err
	}
	order, err := s.db.Order(r.Context(), id)
	if err != nil {
		return err
	}
	return writeResource(w, r, http.StatusOK, order)
}

// updateOrder serves PATCH /v1/store/orders/{orderId}.
func (s *Server) updateOrder(w http.ResponseWriter, r *request) error {
	var status animalstore.OrderStatus
	_, err := decodePatch(r, required("status", readStatus(&status, animalstore.ParseOrderStatus, animalstore.OrderStatuses)))
	if err != nil {
		return err
	}
	id, err := orderID(r)
	if err != nil {
		return err
	}
	order, err := s.db.UpdateOrder(r.Context(), id, func(o *animalstore.Order) error {
		if err := r.checkIfMatch(etagOf(encode(o))); err != nil {
			return err
		}
		return o.Move(status, animalstore.At(s.now()))
	})
	if err != nil {
		return err
	}
	return writeResource(w, r, http.StatusOK, order)
}

func orderID(r *request) (int64, error) {
	id, ok := parseID(r.param)
	if !ok {
		return 0, animalstore.Errorf(animalstore.OrderNotFound, "there is no such order: an id is a positive integer")
	}
	return id, nil
}
