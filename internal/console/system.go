package console

import (
	"net/http"

	"animalstore"
)

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
	return v.render(http.StatusOK, "system", systemPage{v.frame("System"), status, p})
}
