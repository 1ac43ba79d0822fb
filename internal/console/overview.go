package console

import (
	"net/http"

	"animalstore"
	"animalstore/client"
)

type overviewPage struct {
	frame
	Limits  client.Limits
	Periods []period
	Period  period
	Plot    plot
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
	limits, err := v.api.GetLimits(v.r.Context())
	if err != nil {
		return err
	}
	over := v.findPeriod()
	usage, err := v.api.GetUsage(v.r.Context(), over.hours)
	if err != nil {
		return err
	}
	var latest feed
	if err := v.readLatest(&latest, 1, latestRows); err != nil {
		return err
	}
	if err := v.nameActors(&latest); err != nil {
		return err
	}
	latest.Older = "" // there is a link to all events
	return v.render(http.StatusOK, "overview", overviewPage{
		frame: v.c.frame(v, "Overview"), Limits: limits, Periods: periods, Period: over, Plot: v.c.plotUsage(usage, over),
		feed: latest,
	})
}

type systemPage struct {
	frame
	Status animalstore.Status
	Plot   plot
}

// showSystem serves GET /console/system.
func (v *visit) showSystem() error {
	status, err := v.api.GetStatus(v.r.Context())
	if err != nil {
		return err
	}
	p := plot{
		ID: "requests", Title: "Requests per minute, last hour", Each: "minute",
		Series:  []string{"Served", "Rejected (4xx)", "Limited (429)", "Failed (5xx)"},
		Classes: []string{"served", "rejected", "limited", "failed"},
	}
	for _, m := range status.Requests {
		p.Bars = append(p.Bars, bar{m.Minute, []int64{m.Served, m.Rejected, m.Limited, m.Failed}})
	}
	return v.render(http.StatusOK, "system", systemPage{v.c.frame(v, "System"), status, p})
}
