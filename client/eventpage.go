package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"animalstore"
)

// ListEventPage makes one request for events, for programs that show one page at a
// time: at most limit events, 1 to 100, oldest first. next is the id to continue after,
// whether or not there are more. With Latest there are no events, and next is the
// newest id. With Before or Newest they are newest first, and next is the id to
// continue before, or 0 once the oldest kept event, or Since, has been reached.
func (c *Client) ListEventPage(ctx context.Context, q animalstore.EventQuery, limit int,
	options ...CallOption) (events []animalstore.Event, next int64, err error) {
	query, err := eventParameters("listEvents", q, limit)
	if err != nil {
		return nil, 0, err
	}
	op := operation{name: "listEvents", method: http.MethodGet, path: "/events?" + query.Encode()}
	events, k, err := receiveCall(ctx, c, op, options, areEvents)
	if err != nil {
		return nil, 0, err
	}
	direction := "after"
	if q.Backwards() {
		if direction = "before"; k.next == "" {
			return events, 0, nil
		}
	}
	link, err := url.Parse(k.next)
	if err == nil {
		next, err = strconv.ParseInt(link.Query().Get(direction), 10, 64)
	}
	return events, next, err
}
