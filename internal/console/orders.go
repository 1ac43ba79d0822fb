package console

import (
	"cmp"
	"strconv"
	"strings"

	"animalstore"
)

// openStatuses are the statuses of orders that wait for someone.
var openStatuses = []animalstore.OrderStatus{animalstore.OrderPlaced, animalstore.OrderApproved}

// allOrders is the filter for orders in any status: without one, the list shows those that wait.
const allOrders = "all"

type ordersPage struct {
	frame
	page[animalstore.Order]
	Table     orderTable
	Tabs      []tab
	Status    string
	PetID     string
	OrderID   string
	Reference string
	Problem   formError // of the filters
}

// Narrowed reports whether a filter other than the status is set.
func (p ordersPage) Narrowed() bool { return p.PetID+p.OrderID+p.Reference != "" }

// orderTable is a table of orders, with a button for the next step of each.
type orderTable struct {
	Rows      []orderRow
	Marks     bool // rows can be marked
	AllMarked bool
	From      string // the page with the table
}

// orderRow is an order in a table.
type orderRow struct {
	animalstore.Order
	PetName string // "" if the pet was removed
	Face    face
	Mark    string
	Next    *orderMove // nil: nothing, or the key may not do it
}

// listOrders serves GET /console/orders. An id in the filters leads to the order.
func (v *visit) listOrders() error {
	query := v.r.URL.Query()
	p := ordersPage{Status: query.Get("status"), PetID: query.Get("pet"), OrderID: query.Get("order"), Reference: query.Get("reference")}
	if p.Status == "" && p.Narrowed() {
		p.Status = allOrders
	}
	id, err := idFilter(query, "order")
	switch {
	case id != 0:
		if _, err = v.api.GetOrder(v.r.Context(), id); err == nil {
			return v.goTo(orderPath(id), "")
		}
		if codeOf(err) == animalstore.OrderNotFound {
			err = badField("order", "no order has this id")
		}
	case err == nil:
		p.page, err = v.findOrders(&p)
	}
	wrong, err := filterProblem(err)
	if err != nil {
		return err
	}
	p.Table = orderTable{Marks: v.may(ordersWrite), AllMarked: p.AllMarked(), From: p.Link(p.From, p.Trail)}
	if p.Table.Rows, err = v.orderRows(p.Rows); err != nil {
		return err
	}
	p.frame, p.Problem = v.frame("Orders"), wrong
	p.Tabs = statusTabs(v.r.URL, p.Status, "waiting", append([]animalstore.OrderStatus{allOrders}, animalstore.OrderStatuses...))
	return v.render(wrong.status(), "orders", p)
}

// findOrders returns a page of the orders that match the filters: of those that wait, the
// oldest first.
func (v *visit) findOrders(p *ordersPage) (found page[animalstore.Order], err error) {
	q := animalstore.OrderQuery{Reference: animalstore.OptionalText(p.Reference)}
	switch status := animalstore.OrderStatus(p.Status); status {
	case allOrders:
	case "":
		q.Statuses, q.Oldest = openStatuses, true
	default:
		q.Statuses, q.Oldest = []animalstore.OrderStatus{status}, status.Open()
	}
	if q.PetID, err = idFilter(v.r.URL.Query(), "pet"); err != nil {
		return found, err
	}
	return readPage(v, matching(v.api.ListOrders, q), pageSize)
}

// orderRows adds the names and faces of their pets to orders, and the next step, with two
// calls.
func (v *visit) orderRows(orders []animalstore.Order) ([]orderRow, error) {
	names := map[int64]string{}
	photos := map[int64]animalstore.Photo{}
	if v.may(petsRead) && len(orders) > 0 {
		ids := make([]int64, len(orders))
		for i, o := range orders {
			ids[i] = o.PetID
		}
		pets, _, err := readRows(v, matching(v.api.ListPets, animalstore.PetQuery{IDs: distinct(ids)}))
		if err != nil {
			return nil, err
		}
		ids = nil
		for _, pet := range pets {
			names[pet.ID] = pet.Name
			ids = append(ids, pet.ID)
		}
		if photos, err = v.firstPhotos(ids); err != nil {
			return nil, err
		}
	}
	rows := make([]orderRow, len(orders))
	for i, o := range orders {
		name := names[o.PetID]
		rows[i] = orderRow{Order: o, PetName: name, Face: newFace(name, photos[o.PetID])}
		rows[i].Mark = markOf(o.ID, v.c.Server.OrderETag(o), name)
		if moves := v.movesOf(o); len(moves) > 0 {
			rows[i].Next = &moves[0]
		}
	}
	return rows, nil
}

// placeOrder serves POST /console/orders.
func (v *visit) placeOrder() error {
	petID, err := v.integer("petId", "the pet")
	if err != nil {
		return err
	}
	in := animalstore.NewOrder{PetID: petID, Reference: animalstore.OptionalText(v.field("reference")), Note: v.note()}
	order, err := v.api.PlaceOrder(v.r.Context(), in, v.idempotencyKey())
	if err != nil {
		return err
	}
	if !v.may(ordersRead) {
		return v.goTo("/console/pets/new", "placed")
	}
	return v.goTo(orderPath(order.ID), "placed")
}

func orderPath(id int64) string { return "/console/orders/" + strconv.FormatInt(id, 10) }

type orderPage struct {
	frame
	Order   animalstore.Order
	PetName string
	Face    face
	Gone    bool // the pet was removed
	Moves   []orderMove
	ETag    string
	Problem formError
	Texts   orderTexts
	history
}

// orderTexts is what the form of the reference and the note shows.
type orderTexts struct {
	Reference, Note animalstore.OptionalText
	Problem         formError
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
	animalstore.OrderDelivered: "Deliver",
	animalstore.OrderCancelled: "Cancel the order",
}

var moveConfirmations = map[animalstore.OrderStatus]string{
	animalstore.OrderDelivered: "Yes, it was delivered",
	animalstore.OrderCancelled: "Yes, cancel it",
}

// movesOf are the moves that an order and the key allow, the next step first.
func (v *visit) movesOf(order animalstore.Order) (moves []orderMove) {
	for _, s := range animalstore.OrderStatuses {
		if moved := order; v.may(ordersWrite) && moved.Move(s, order.UpdatedAt) == nil {
			moves = append(moves, orderMove{s, moveTitles[s], moveConfirmations[s], s.PetStatus()})
		}
	}
	return moves
}

// showOrder serves GET /console/orders/{id}.
func (v *visit) showOrder() error { return v.showOrderWith(func(*orderPage) {}) }

// showOrderWith shows an order. change puts an error next to its form.
func (v *visit) showOrderWith(change func(*orderPage)) error {
	order, etag, err := readTagged(v, v.api.GetOrder)
	if err != nil {
		return err
	}
	rows, err := v.orderRows([]animalstore.Order{order})
	if err != nil {
		return err
	}
	p := orderPage{Order: order, ETag: etag, Moves: v.movesOf(order), PetName: rows[0].PetName, Face: rows[0].Face}
	if p.history, err = v.readHistory("order", order.ID); err != nil {
		return err
	}
	p.Gone = p.PetName == "" && v.may(petsRead)
	p.Texts = orderTexts{Reference: order.Reference, Note: order.Note}
	change(&p)
	p.frame = v.frame("Order " + strconv.FormatInt(order.ID, 10))
	return v.render(cmp.Or(p.Problem, p.Texts.Problem).status(), "order", p)
}

// moveOrder serves POST /console/orders/{id}.
func (v *visit) moveOrder() error {
	back := v.r.URL.Path
	if from := v.field("from"); from != "" {
		back = safeNext(from)
	}
	to := animalstore.OrderStatus(v.field("status"))
	_, refused := v.api.UpdateOrder(v.r.Context(), v.id, animalstore.OrderPatch{Status: &to}, v.ifMatch())
	return v.finish(refused, back, string(to), func(wrong formError) error {
		if !v.may(ordersRead) {
			return refused
		}
		now, err := v.api.GetOrder(v.r.Context(), v.id)
		if err != nil {
			return err
		}
		if now.Status == to { // the same button again
			return v.goTo(back, "unchanged")
		}
		if isStale(refused) {
			wrong.Message = "You wanted it to become " + string(to) + ", but someone else changed it: it is now " + string(now.Status) + "."
		}
		return v.showOrderWith(func(p *orderPage) { p.Problem = wrong })
	})
}

// note is the note in a form. Browsers send line breaks as \r\n.
func (v *visit) note() animalstore.OptionalText {
	return animalstore.OptionalText(strings.ReplaceAll(v.field("note"), "\r\n", "\n"))
}

// changeTexts serves POST /console/orders/{id}/texts: the reference and the note.
func (v *visit) changeTexts() error {
	reference, note := animalstore.OptionalText(v.field("reference")), v.note()
	patch := animalstore.OrderPatch{Reference: &reference, Note: &note}
	_, refused := v.api.UpdateOrder(v.r.Context(), v.id, patch, v.ifMatch())
	return v.finish(refused, orderPath(v.id), "saved", func(wrong formError) error {
		if !v.may(ordersRead) {
			return refused
		}
		if isStale(refused) {
			wrong.Message = "Someone changed this order after you opened it, so nothing was saved. Compare, then save again."
		}
		return v.showOrderWith(func(p *orderPage) { p.Texts = orderTexts{reference, note, wrong} })
	})
}
