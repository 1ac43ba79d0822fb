package api

import (
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"animalstore"
)

// maxWait is how many seconds a request for events may wait for the next one.
const maxWait = 30

const eventsPath = "/v1/events"

// eventQuery is the query of a request for events.
type eventQuery struct {
	animalstore.EventQuery
	limit int
	wait  time.Duration

	nextQuery url.Values // of the link to the next page
}

// parseEventQuery reads a query. A stream ignores limit and wait.
func parseEventQuery(rawQuery string, stream bool) (*eventQuery, error) {
	values, err := parseParams(rawQuery)
	if err != nil {
		return nil, err
	}
	q := &eventQuery{}
	if q.EventQuery, err = animalstore.ParseEventQuery(values); err != nil {
		return nil, err
	}
	if q.Backwards() && (stream || values.Has("wait")) {
		return nil, animalstore.Errorf(animalstore.InvalidParameter,
			"before can't be combined with wait or a stream: it leads back to older events")
	}
	if stream {
		return q, nil
	}
	p := animalstore.NewParameters(values)
	q.limit = int(p.Integer("limit", 1, maxLimit, defaultLimit))
	q.wait = time.Duration(p.Integer("wait", 0, maxWait, 0)) * time.Second
	q.nextQuery = q.Values()
	for _, name := range []string{"limit", "wait"} {
		if values.Has(name) {
			q.nextQuery.Set(name, values.Get(name))
		}
	}
	return q, p.Err()
}

// resume continues a stream after the event in Last-Event-ID, if that is given.
func (q *eventQuery) resume(h http.Header) error {
	values := h["Last-Event-Id"]
	if len(values) == 0 || len(values) == 1 && values[0] == "" {
		return nil
	}
	id, ok := animalstore.ParseInteger(values[0])
	if len(values) > 1 || !ok || id < 0 {
		return animalstore.Errorf(animalstore.InvalidParameter, "Last-Event-ID must be the id of an event")
	}
	q.After, q.Latest = &id, false
	return nil
}

// next is the link to the events after a position, or before it. Going forward, since has
// done its work; going back, it still says where to end.
func (q *eventQuery) next(position int64) string {
	direction := "after"
	if q.Backwards() {
		direction = "before"
	} else {
		q.nextQuery.Del("since")
	}
	q.nextQuery.Set(direction, strconv.FormatInt(position, 10))
	return "<" + eventsPath + "?" + q.nextQuery.Encode() + `>; rel="next"`
}

const typeEventStream = "text/event-stream"

// prefersStream reports whether a client wants events as a stream. If it accepts JSON
// as well, it gets JSON: generated clients accept every type in the document, but can't
// read an endless response. A wildcard is JSON too, but a client that names the stream and
// prefers nothing to it gets the stream.
func prefersStream(h http.Header) bool {
	var stream, json, anything float64
	for _, value := range h["Accept"] {
		for part := range strings.SplitSeq(value, ",") {
			mediaType, params, err := mime.ParseMediaType(part)
			if err != nil {
				continue
			}
			quality := 1.0
			if q, err := strconv.ParseFloat(params["q"], 64); err == nil {
				quality = q
			}
			switch mediaType {
			case typeEventStream:
				stream = max(stream, quality)
			case typeJSON:
				json = max(json, quality)
			case "*/*", "application/*":
				anything = max(anything, quality)
			}
		}
	}
	return stream > json && stream >= anything
}
