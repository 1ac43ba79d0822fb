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
	orders, link := pageOf(q, orders, func(o *animalstore.Order) int64 { return o.ID })
	w.Header()["Link"] = []string{link}
	return writeJSON(w, http.StatusOK, orders)
}
