package client

import (
	"context"
	"net/http"
	"strconv"

	"animalstore"
)

// Limits is how much of its plan a key has used.
type Limits struct {
	Plan    animalstore.Plan `json:"plan"`
	Minute  LimitWindow      `json:"minute"`
	Day     LimitWindow      `json:"day"`
	Strikes Strikes          `json:"strikes"`
	Ban     Ban              `json:"ban"`
}

// LimitWindow is how much of a window a key has used.
type LimitWindow struct {
	Limit     int64            `json:"limit"`
	Remaining int64            `json:"remaining"`
	Reset     animalstore.Time `json:"reset"` // when the window ends
}

// Strikes are requests that were sent although the service had said to wait.
type Strikes struct {
	Count     int64 `json:"count"`     // in the last ten minutes
	Threshold int64 `json:"threshold"` // the number that leads to a ban
}

// Ban is the state of a key's ban.
type Ban struct {
	Active bool             `json:"active"`
	Until  animalstore.Time `json:"until"` // zero unless active
	Level  int64            `json:"level"` // number of consecutive bans; each makes the next one longer
}

// GetLimits returns how much of its plan the client's key has used. It counts as a
// request; [Client.RateLimit], which returns the latest headers, doesn't.
func (c *Client) GetLimits(ctx context.Context, options ...CallOption) (Limits, error) {
	k := &call{operation: "getLimits", method: http.MethodGet, path: "/limits"}
	return send(ctx, c, k, options, func(l *Limits) bool { return l.Plan != "" && l.Minute.Limit > 0 && l.Day.Limit > 0 })
}

// GetUsage returns the number of requests of the client's key by hour, the latest
// first, for the given number of hours, at most 2160; 0 means 24. Hours without a
// request are omitted.
func (c *Client) GetUsage(ctx context.Context, hours int, options ...CallOption) ([]animalstore.Usage, error) {
	k := &call{operation: "getUsage", method: http.MethodGet, path: "/usage" + hoursQuery(hours)}
	return send(ctx, c, k, options, isUsage)
}

func hoursQuery(hours int) string {
	if hours == 0 {
		return ""
	}
	return "?hours=" + strconv.Itoa(hours)
}

func isUsage(usage *[]animalstore.Usage) bool { return *usage != nil }
