package console

import (
	"net/http"

	"animalstore/client"
)

type usagePage struct {
	frame
	Limits  client.Limits
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
	return v.render(http.StatusOK, "usage", usagePage{v.c.frame(v, "Usage"), limits, periods, over, v.c.plotUsage(usage, over)})
}
