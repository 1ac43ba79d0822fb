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
	Waiting  []orderRow // for approval or delivery
	Today    string     // the date in UTC
	Quota    client.RateLimit
	QuotaEnd animalstore.Time
	feed
}

// showOverview serves GET /console. A key that may not read begins elsewhere.
func (v *visit) showOverview() error {
	switch {
	case v.may(read):
	case v.may(admin):
		return v.goTo("/console/keys", "")
	default:
		return v.goTo("/console/pets/new", "")
	}
	p := overviewPage{Today: v.c.Now().UTC().Format(time.DateOnly)}
	var err error
	if p.Waiting, err = v.waitingOrders(); err != nil {
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

// waitingOrders returns the newest orders that wait for approval, and for delivery.
func (v *visit) waitingOrders() ([]orderRow, error) {
	var all []animalstore.Order
	for _, status := range animalstore.OrderStatuses {
		if !status.Open() {
			continue
		}
		orders, _, err := readRows("", func(options ...client.CallOption) iter.Seq2[animalstore.Order, error] {
			return v.api.ListOrders(v.r.Context(), client.OrderQuery{Status: status, PageSize: waitingRows}, options...)
		})
		if err != nil {
			return nil, err
		}
		all = append(all, orders...)
	}
	return v.orderRows(all)
}
