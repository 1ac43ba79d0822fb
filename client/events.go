package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"animalstore"
)

// ListEvents lists the events so far, oldest first, and ends with the newest.
// [Client.Events] also waits for later ones. With Before or Newest it lists them newest
// first and ends with the oldest kept event, or at Since.
func (c *Client) ListEvents(ctx context.Context, q animalstore.EventQuery, options ...CallOption) iter.Seq2[animalstore.Event, error] {
	return func(yield func(animalstore.Event, error) bool) {
		back := q.Backwards()
		query, err := c.eventsQuery(ctx, "listEvents", q, false, options)
		at := "/events?" + query.Encode()
		opts := withoutConditions(options)
		for err == nil {
			op := operation{name: "listEvents", method: http.MethodGet, path: at}
			var page []animalstore.Event
			var k *call
			if page, k, err = receiveCall(ctx, c, op, opts, areEvents); err != nil {
				break
			}
			for _, e := range page {
				if !yield(e, nil) {
					return
				}
			}
			switch {
			case back && k.next == "", !back && k.next == at:
				return
			case k.next == "":
				err = noNextEvents(k)
			}
			at = k.next
		}
		yield(animalstore.Event{}, err)
	}
}

// Events follows the events of the store, oldest first. The loop has no end: it waits
// for the next event. It stops when ctx ends, when you leave the loop, or after an
// error that a retry can't fix. After any other failure it resumes where it was,
// however long that takes, with the pauses that [WithBackoff] sets and no limit on the
// number of attempts. So no event is skipped or repeated.
//
// The error has code events_expired if the events after this position are no longer
// kept: rebuild from the lists what you built from earlier events.
//
// The service sends the events in a stream, which counts as one request as long as it
// lasts. If a stream can't be used, because a proxy holds it back or the key has too many,
// the client requests events one response after the other for ten minutes, at least two a
// minute, and then tries a stream again.
func (c *Client) Events(ctx context.Context, q animalstore.EventQuery, options ...CallOption) iter.Seq2[animalstore.Event, error] {
	return func(yield func(animalstore.Event, error) bool) {
		query, err := c.eventsQuery(ctx, "events", q, true, options)
		if err == nil {
			query.Del("limit") // a stream has no pages
			f := &follower{client: c, options: options, query: query, yield: func(e animalstore.Event) bool { return yield(e, nil) }}
			err = f.run(ctx)
		}
		if err != nil {
			yield(animalstore.Event{}, err)
		}
	}
}

// LatestEventID returns the id of the newest event, or 0 if there is none. Later events
// come after it: see [animalstore.EventQuery].
func (c *Client) LatestEventID(ctx context.Context, options ...CallOption) (int64, error) {
	return c.latestEventID(ctx, "latestEventID", false, options)
}

func (c *Client) latestEventID(ctx context.Context, name string, endless bool, options []CallOption) (int64, error) {
	op := operation{name: name, method: http.MethodGet, path: "/events?after=latest&limit=1", endless: endless}
	_, k, err := receiveCall(ctx, c, op, options, areEvents)
	if err != nil {
		return 0, err
	}
	return nextEvents(k)
}

// nextEvents returns the id in a response's link to the next events.
func nextEvents(k *call) (int64, error) {
	// Without a link, k.next is "", and so is the parameter.
	_, query, _ := strings.Cut(k.next, "?")
	params, _ := url.ParseQuery(query)
	id, err := strconv.ParseInt(params.Get("after"), 10, 64)
	if err != nil {
		return 0, noNextEvents(k)
	}
	return id, nil
}

func noNextEvents(k *call) error {
	return k.wrap(errors.New("the response has no link to the next events"))
}

// eventsQuery returns the parameters of the first request. With Latest it first requests
// the newest id: if the first events themselves were requested with after=latest and the
// response were lost, the retry would miss the events in between.
func (c *Client) eventsQuery(ctx context.Context, operation string, q animalstore.EventQuery, follow bool,
	options []CallOption) (url.Values, error) {
	query, err := eventParameters(operation, q, maxPageSize)
	if err != nil {
		return nil, err
	}
	if follow && q.Backwards() {
		return nil, fmt.Errorf("%s: Before and Newest read backwards, so they can't be followed", operation)
	}
	if q.Latest {
		id, err := c.latestEventID(ctx, operation, follow, options)
		if err != nil {
			return nil, err
		}
		query.Set("after", strconv.FormatInt(id, 10))
	}
	return query, nil
}

// eventParameters returns the parameters of a request for events. Two positions would look
// like one.
func eventParameters(operation string, q animalstore.EventQuery, limit int) (url.Values, error) {
	given := 0
	for _, isGiven := range []bool{q.After != nil, q.Latest, q.Before != 0, q.Newest} {
		if isGiven {
			given++
		}
	}
	if given > 1 {
		return nil, fmt.Errorf("%s: only one of After, Latest, Before and Newest can be set", operation)
	}
	if !q.Since.IsZero() && (q.After != nil || q.Latest) {
		return nil, fmt.Errorf("%s: Since can't be used with After or Latest", operation)
	}
	query := q.Values()
	query.Set("limit", strconv.Itoa(limit))
	return query, nil
}

var areEvents = eachIs(isEvent)

func isEvent(e *animalstore.Event) bool { return e.ID >= 1 && e.Type != "" && e.Data != nil }
