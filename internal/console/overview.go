package console

import (
	"net/http"
	"slices"
	"time"

	"animalstore"
	"animalstore/client"
)

// waitingRows is how many of the orders that wait the overview shows.
const waitingRows = 10

type overviewPage struct {
	frame
	Inventory animalstore.Inventory
	Age       int64 // of the inventory, in seconds
	Uncounted bool  // there is no inventory
	Statuses  []animalstore.PetStatus
	Waiting   orderTable // those that wait longest
	Counts    []waitingCount
	Many      bool   // more wait than were counted
	Today     string // the date in UTC
	Quota     client.RateLimit
	QuotaEnd  animalstore.Time
	feed
}

// showOverview serves GET /console. It redirects keys that may not read.
func (v *visit) showOverview() error {
	switch {
	case v.may(eventsRead):
	case v.may(admin):
		return v.goTo("/console/keys", "")
	default:
		return v.goTo("/console/pets/new", "")
	}
	p := overviewPage{Statuses: animalstore.PetStatuses, Today: v.c.Now().UTC().Format(time.DateOnly)}
	if v.may(petsRead) {
		if err := v.countPets(&p); err != nil {
			return err
		}
	}
	if v.may(ordersRead) {
		if err := v.readWaiting(&p); err != nil {
			return err
		}
	}
	if err := v.readLatest(&p.feed, 1, latestRows); err != nil {
		return err
	}
	if err := v.unlinkGone(p.feed.Rows); err != nil {
		return err
	}
	p.Older = ""                   // there is a link to all events
	p.Quota, _ = v.api.RateLimit() // as of the last call
	p.QuotaEnd = animalstore.At(p.Quota.Reset)
	p.frame = v.frame("Overview")
	return v.render(http.StatusOK, "overview", p)
}

// countPets reads how many pets there are. A very busy store may not count them in time;
// the page is then shown without the counts.
func (v *visit) countPets(p *overviewPage) (err error) {
	var meta client.Meta
	p.Inventory, err = v.api.GetInventory(v.r.Context(), animalstore.InventoryQuery{}, client.ReadMeta(&meta))
	p.Age = int64(meta.Age / time.Second)
	if p.Uncounted = err != nil && meta.Status == http.StatusServiceUnavailable; p.Uncounted {
		return nil
	}
	return err
}

// waitingCount is how many orders in a status wait.
type waitingCount struct {
	Status animalstore.OrderStatus
	Orders int
}

// Waits is how many orders wait.
func (p overviewPage) Waits() (n int) {
	for _, c := range p.Counts {
		n += c.Orders
	}
	return n
}

// readWaiting reads the orders that wait for approval or delivery, oldest first.
func (v *visit) readWaiting(p *overviewPage) error {
	q := animalstore.OrderQuery{Statuses: openStatuses, Oldest: true}
	orders, next, err := readRows(v, matching(v.api.ListOrders, q))
	if err != nil {
		return err
	}
	p.Many = next != ""
	for _, s := range openStatuses {
		p.Counts = append(p.Counts, waitingCount{Status: s})
	}
	for _, o := range orders {
		p.Counts[slices.Index(openStatuses, o.Status)].Orders++
	}
	p.Waiting.From = "/console"
	p.Waiting.Rows, err = v.orderRows(orders[:min(waitingRows, len(orders))])
	return err
}
