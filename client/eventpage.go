package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"animalstore"
)

// ListEventPage makes one request for events, for a program that shows one page at a
// time: at most limit events, 1 to 100, oldest first. next is the id to go on after,
// whether or not there are more. With Latest there are no events, and next is the newest
// id.
func (c *Client) ListEventPage(ctx context.Context, o EventsOptions, limit int, options ...CallOption) (events []animalstore.Event, next int64, err error) {
	query := url.Values{"limit": {strconv.Itoa(limit)}}
	if len(o.Types) > 0 {
		query.Set("type", strings.Join(o.Types, ","))
	}
	if o.Subject != "" {
		query.Set("subject", o.Subject)
	}
	switch {
	case o.Latest:
		query.Set("after", "latest")
	case o.After != 0:
		query.Set("after", decimal(o.After))
	}
	k := &call{operation: "listEvents", method: http.MethodGet, path: "/events?" + query.Encode()}
	if events, err = send(ctx, c, k, options, areEvents); err != nil {
		return nil, 0, err
	}
	link, err := url.Parse(k.next)
	if err == nil {
		next, err = strconv.ParseInt(link.Query().Get("after"), 10, 64)
	}
	return events, next, err
}
