package console

import (
	"net/http"

	"animalstore"
)

type usagePage struct {
	frame
	Limits  animalstore.LimitStatus
	Periods []period
	Period  period
	Plot    plot
}

// showUsage serves GET /console/usage: what the key has used, and has left.
func (v *visit) showUsage() error {
	limits, err := v.api.GetLimits(v.r.Context())
	if err != nil {
		return err
	}
	over := v.findPeriod()
	usage, err := v.api.GetUsage(v.r.Context(), over.hours)
	if err != nil {
		return err
	}
	return v.render(http.StatusOK, "usage", usagePage{v.frame("Usage"), limits, periods, over, v.c.plotUsage(usage, over)})
}
