package client

import (
	"context"
	"net/http"
	"strconv"

	"animalstore"
)

// GetLimits returns how much of its plan the client's key has used. It counts as a
// request; [Client.RateLimit], which returns the latest headers, doesn't.
func (c *Client) GetLimits(ctx context.Context, options ...CallOption) (animalstore.LimitStatus, error) {
	op := operation{name: "getLimits", method: http.MethodGet, path: "/limits"}
	return receive(ctx, c, op, options,
		func(l *animalstore.LimitStatus) bool { return l.Plan != "" && l.Minute.Limit > 0 && l.Day.Limit > 0 })
}

// GetUsage returns the number of requests of the client's key by hour, the latest
// first, for the given number of hours, at most 2160; 0 means 24. Hours without a
// request are omitted.
func (c *Client) GetUsage(ctx context.Context, hours int, options ...CallOption) ([]animalstore.Usage, error) {
	op := operation{name: "getUsage", method: http.MethodGet, path: "/usage" + hoursQuery(hours)}
	return receive(ctx, c, op, options, isUsage)
}

func hoursQuery(hours int) string {
	if hours == 0 {
		return ""
	}
	return "?hours=" + strconv.Itoa(hours)
}

func isUsage(usage *[]animalstore.Usage) bool { return *usage != nil }
