package api

import (
	"context"
	"net/http"
	"unicode/utf8"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/strictjson"
)

// listOrders serves GET /v1/store/orders.
func (s *Server) listOrders(w http.ResponseWriter, r *request) error {
	q, err := parseListQuery("/v1/store/orders", r.URL.RawQuery, "petId", "reference", "sort", "status")
	if err != nil {
		return err
	}
	query, err := orderQuery(q)
	if err != nil {
		return err
	}
	orders, err := s.db.Orders(r.Context(), query)
	if err != nil {
		return err
	}
	return writePage(w, r, q, orders, func(o *animalstore.Order) int64 { return o.ID })
}

// orderQuery reads the filters of a list of orders. Its limit is one more than the page
// has, to see whether there is a next page.
func orderQuery(q *listQuery) (query db.OrderQuery, err error) {
	if query.Statuses, err = filterSomeOf(q, "status", animalstore.OrderStatuses); err != nil {
		return query, err
	}
	if query.PetID, err = idFilter(q, "petId"); err != nil {
		return query, err
	}
	if text, ok := q.filters["reference"]; ok {
		n := utf8.RuneCountInString(text)
		if n < 1 || n > animalstore.MaxReferenceLength || !isText(text) {
			return query, q.invalidFilter("reference", "must have 1 to 100 characters, in UTF-8 and without U+0000")
		}
		query.Reference = animalstore.OptionalText(text)
	}
	sort, err := filterOneOf(q, "sort", []string{"oldest"})
	if err != nil {
		return query, err
	}
	query.Oldest = sort != ""
	query.Limit = q.limit + 1
	query.After, err = q.positiveID()
	return query, err
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
	order, replayed, err := s.db.PlaceOrder(r.Context(), in, animalstore.At(s.now()), idempotency)
	if err != nil {
		return petKind.notFound(err)
	}
	setReplayed(w, replayed)
	setLocation(w, "/v1/store/orders", order.ID)
	return writeResource(w, r, http.StatusCreated, order)
}

// getOrder serves GET /v1/store/orders/{orderId}.
func (s *Server) getOrder(w http.ResponseWriter, r *request) error {
	return serveAtPath(w, r, &orderKind, s.db.Order)
}

// updateOrder serves PATCH /v1/store/orders/{orderId}.
func (s *Server) updateOrder(w http.ResponseWriter, r *request) error {
	patch, err := decode(r, strictjson.DecodeOrderPatch)
	if err != nil {
		return err
	}
	return serveAtPath(w, r, &orderKind, func(ctx context.Context, id int64) (animalstore.Order, error) {
		return s.db.UpdateOrder(ctx, id, func(o *animalstore.Order) error {
			if err := r.checkIfMatch(etagOf(encode(o))); err != nil {
				return err
			}
			return patch.Apply(o, animalstore.At(s.now()))
		})
	})
}
