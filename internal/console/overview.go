package console

import (
	"iter"
	"net/http"
	"time"

	"animalstore"
	"animalstore/client"
)

// waitingRows is how many orders of each status the overview shows.
const waitingRows = 5

type overviewPage struct {
	frame
	Inventory animalstore.Inventory
	Age       int64 // of the inventory, in seconds
	Uncounted bool  // there is no inventory
	Statuses  []animalstore.PetStatus
	Waiting   []orderRow                // for approval or delivery
	More      []animalstore.OrderStatus // of others that wait
	Today     string                    // the date in UTC
	Quota     client.RateLimit
	QuotaEnd  animalstore.Time
	feed
}

// showOverview serves GET /console. It redirects keys that may not read.
func (v *visit) showOverview() error {
	switch {
	case v.may(read):
	case v.may(admin):
		return v.goTo("/console/keys", "")
	default:
		return v.goTo("/console/pets/new", "")
	}
	p := overviewPage{Statuses: animalstore.PetStatuses, Today: v.c.Now().UTC().Format(time.DateOnly)}
	err := v.countPets(&p)
	if err != nil {
		return err
	}
	if p.Waiting, p.More, err = v.waitingOrders(); err != nil {
		return err
	}
	if err := v.readLatest(&p.feed, 1, latestRows); err != nil {
		return err
	}
	if err := v.nameActors(&p.feed); err != nil {
		return err
	}
	p.Older = ""                   // there is a link to all events
	p.Quota, _ = v.api.RateLimit() // as of the last call
	p.QuotaEnd = animalstore.At(p.Quota.Reset)
	p.frame = v.c.frame(v, "Overview")
	return v.render(http.StatusOK, "overview", p)
}

// countPets reads how many pets there are. A very busy store may not count them in time;
// the page is then shown without the counts.
func (v *visit) countPets(p *overviewPage) (err error) {
	var meta client.Meta
	p.Inventory, err = v.api.GetInventory(v.r.Context(), client.InventoryQuery{}, client.ReadMeta(&meta))
	p.Age = int64(meta.Age / time.Second)
	if p.Uncounted = err != nil && meta.Status == http.StatusServiceUnavailable; p.Uncounted {
		return nil
	}
	return err
}

// waitingOrders returns the newest orders that wait for approval, and for delivery, and
// the statuses that others have.
func (v *visit) waitingOrders() (rows []orderRow, more []animalstore.OrderStatus, err error) {
	var all []animalstore.Order
	for _, status := range animalstore.OrderStatuses {
		if !status.Open() {
			continue
		}
		orders, next, err := readRows("", func(options ...client.CallOption) iter.Seq2[animalstore.Order, error] {
			return v.api.ListOrders(v.r.Context(), client.OrderQuery{Status: status, PageSize: waitingRows}, options...)
		})
		if err != nil {
			return nil, nil, err
		}
		if all = append(all, orders...); next != "" {
			more = append(more, status)
		}
	}
	rows, err = v.orderRows(all)
	return rows, more, err
}
