package console

import (
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"animalstore"
	"animalstore/client"
)

type ordersPage struct {
	frame
	page[animalstore.Order]
	Orders  []orderRow
	Tabs    []tab
	Status  string
	PetID   string
	OrderID string
	Problem formError // of the filters
}

// orderRow is an order in a table.
type orderRow struct {
	animalstore.Order
	PetName string // "" if the pet was removed
	Face    *face  // nil: not shown
}

// listOrders serves GET /console/orders.
func (v *visit) listOrders() error {
	query := v.r.URL.Query()
	orders, err := v.findOrders(query)
	wrong, status, err := filterProblem(err)
	if err != nil {
		return err
	}
	rows, err := v.orderRows(orders.Rows)
	if err != nil {
		return err
	}
	if err := v.addFaces(rows); err != nil {
		return err
	}
	tabs := statusTabs(v.r.URL, animalstore.OrderStatuses)
	return v.render(status, "orders", ordersPage{v.c.frame(v, "Orders"), orders, rows, tabs, query.Get("status"), query.Get("pet"), query.Get("order"), wrong})
}

// findOrders returns a page of the orders that match the filters. The API has no filter for
// the id.
func (v *visit) findOrders(query url.Values) (p page[animalstore.Order], err error) {
	q := client.OrderQuery{Status: animalstore.OrderStatus(query.Get("status")), PageSize: pageSize}
	if q.PetID, err = idFilter(query, "pet"); err != nil {
		return p, err
	}
	id, err := idFilter(query, "order")
	if err != nil {
		return p, err
	}
	if id == 0 {
		return readPage(v, func(options ...client.CallOption) iter.Seq2[animalstore.Order, error] {
			return v.api.ListOrders(v.r.Context(), q, options...)
		})
	}
	order, err := v.api.GetOrder(v.r.Context(), id)
	if codeOf(err) == animalstore.OrderNotFound {
		return p, nil
	}
	if (q.Status == "" || q.Status == order.Status) && (q.PetID == 0 || q.PetID == order.PetID) {
		p.Rows = []animalstore.Order{order}
	}
	return p, err
}

// orderRows adds the names of their pets to orders.
func (v *visit) orderRows(orders []animalstore.Order) ([]orderRow, error) {
	names := map[int64]string{}
	var ids []int64
	for _, o := range orders {
		if _, known := names[o.PetID]; !known {
			names[o.PetID] = ""
			ids = append(ids, o.PetID)
		}
	}
	if ids == nil {
		return nil, nil
	}
	for pet, err := range v.api.ListPets(v.r.Context(), client.PetQuery{IDs: ids}) {
		if err != nil {
			return nil, err
		}
		names[pet.ID] = pet.Name
	}
	rows := make([]orderRow, len(orders))
	for i, o := range orders {
		rows[i] = orderRow{Order: o, PetName: names[o.PetID]}
	}
	return rows, nil
}

// addFaces adds the faces of their pets to orders.
func (v *visit) addFaces(rows []orderRow) error {
	var ids []int64
	for _, r := range rows {
		if r.PetName != "" && !slices.Contains(ids, r.PetID) {
			ids = append(ids, r.PetID)
		}
	}
	photos, err := v.firstPhotos(ids)
	if err != nil {
		return err
	}
	for i, r := range rows {
		shown := newFace(r.PetName, photos[r.PetID])
		rows[i].Face = &shown
	}
	return nil
}

// placeOrder serves POST /console/orders.
func (v *visit) placeOrder() error {
	petID, err := v.integer("petId", "the pet")
	if err != nil {
		return err
	}
	order, err := v.api.PlaceOrder(v.r.Context(), petID, v.idempotencyKey())
	if err != nil {
		return err
	}
	if !v.may(read) {
		return v.goTo("/console/pets/new", "placed")
	}
	return v.goTo("/console/orders/"+strconv.FormatInt(order.ID, 10), "placed")
}

type orderPage struct {
	frame
	Order   animalstore.Order
	PetName string
	Gone    bool // the pet was removed
	Moves   []orderMove
	ETag    string
	Problem formError
	feed
}

// orderMove is a button.
type orderMove struct {
	Status animalstore.OrderStatus
	Title  string
	// Confirm is the button that ends an order, after one that asks; "" for other moves.
	Confirm string
	Effect  animalstore.PetStatus // on the pet
}

var moveTitles = map[animalstore.OrderStatus]string{
	animalstore.OrderApproved:  "Approve",
	animalstore.OrderDelivered: "Mark as delivered",
	animalstore.OrderCancelled: "Cancel the order",
}

var moveConfirmations = map[animalstore.OrderStatus]string{
	animalstore.OrderDelivered: "Yes, it was delivered",
	animalstore.OrderCancelled: "Yes, cancel it",
}

// showOrder serves GET /console/orders/{id}.
func (v *visit) showOrder() error {
	id, err := v.id()
	if err != nil {
		return err
	}
	past, err := v.historyOf("order", id, false)
	if err != nil {
		return err
	}
	return v.showThisOrder(http.StatusOK, id, formError{}, past)
}

func (v *visit) showThisOrder(status int, id int64, problem formError, past feed) error {
	var meta client.Meta
	order, err := v.api.GetOrder(v.r.Context(), id, client.ReadMeta(&meta))
	if err != nil {
		return err
	}
	pet, err := v.api.FindPet(v.r.Context(), order.PetID)
	gone := codeOf(err) == animalstore.PetNotFound
	if err != nil && !gone {
		return err
	}
	var moves []orderMove
	for _, s := range animalstore.OrderStatuses {
		if moved := order; v.may(write) && moved.Move(s, order.UpdatedAt) == nil {
			moves = append(moves, orderMove{s, moveTitles[s], moveConfirmations[s], s.PetStatus()})
		}
	}
	return v.render(status, "order", orderPage{v.c.frame(v, "Order "+strconv.FormatInt(id, 10)), order, pet.Name, gone, moves, meta.ETag, problem, past})
}

// moveOrder serves POST /console/orders/{id}.
func (v *visit) moveOrder() error {
	id, err := v.id()
	if err != nil {
		return err
	}
	to := animalstore.OrderStatus(v.field("status"))
	_, err = v.api.UpdateOrder(v.r.Context(), id, animalstore.OrderPatch{Status: &to}, v.ifMatch())
	if err == nil {
		return v.goTo(v.r.URL.Path, string(to))
	}
	message, status, fixable := formProblem(err)
	if !fixable && !isStale(err) {
		return err
	}
	if !v.may(read) {
		return err
	}
	now, readErr := v.api.GetOrder(v.r.Context(), id)
	if readErr != nil {
		return readErr
	}
	if now.Status == to { // the same button again
		return v.goTo(v.r.URL.Path, "unchanged")
	}
	if !fixable {
		message, status = formError{Message: "You wanted it to become " + string(to) + ", but someone else changed it: it is now " + string(now.Status) + "."}, http.StatusPreconditionFailed
	}
	return v.showThisOrder(status, id, message, feed{})
}
