package api

import (
	"net/http"

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
	orders, err := s.db.Orders(r.Context(), db.OrderQuery{Status: status, PetID: petID, Before: q.before, Limit: q.limit + 1})
	if err != nil {
		return err
	}
	var last int64
	if len(orders) > q.limit {
		orders = orders[:q.limit]
		last = orders[q.limit-1].ID
	}
	w.Header()["Link"] = []string{q.link(last)}
	return writeJSON(w, http.StatusOK, orders)
}
