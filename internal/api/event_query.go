package api

import (
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"animalstore"
	"animalstore/internal/events"
)

// maxWait is how many seconds a request for events may wait for the next one.
const maxWait = 30

const eventsPath = "/v1/events"

// eventQuery is the query of a request for events.
type eventQuery struct {
	after  string // an id, "latest", or "" for the oldest event that is kept
	before string // an id, "latest", or "" for a list that isn't newest first
	filter events.Filter
	limit  int
	wait   time.Duration

	nextQuery url.Values // of the link to the next page
}

// parseEventQuery reads a query. A stream ignores limit and wait.
func parseEventQuery(rawQuery string, stream bool) (*eventQuery, error) {
	q := &eventQuery{limit: defaultLimit, nextQuery: url.Values{}}
	params, err := parseParams(rawQuery, "type")
	if err != nil {
		return nil, err
	}
	parsers := []struct {
		name  string
		parse func(text string) error
	}{{"after", q.setAfter}, {"before", q.setBefore}, {"type", q.setTypes}, {"subject", q.setSubject}, {"petId", q.setPetID}, {"limit", q.setLimit}, {"wait", q.setWait}}
	if stream {
		parsers = parsers[:5]
	}
	for _, p := range parsers {
		if n := len(params[p.name]); n > 1 {
			return nil, animalstore.Errorf(animalstore.InvalidParameter, "%s is given %d times: give it once", p.name, n)
		}
		if !params.Has(p.name) {
			continue
		}
		text := params.Get(p.name)
		if err := p.parse(text); err != nil {
			return nil, err
		}
		q.nextQuery.Set(p.name, text)
	}
	if q.before != "" && (stream || params.Has("after") || params.Has("wait")) {
		return nil, animalstore.Errorf(animalstore.InvalidParameter, "before can't be combined with after, wait or a stream: it leads back to older events")
	}
	if q.filter.PetID != 0 && q.filter.Subject != "" {
		return nil, animalstore.Errorf(animalstore.InvalidParameter, "petId can't be combined with subject: omit one of them")
	}
	return q, nil
}

const latest = "latest"

func (q *eventQuery) setAfter(text string) error {
	if id, ok := parseInt64(text); text != latest && (!ok || id < 0) {
		return animalstore.Errorf(animalstore.InvalidParameter, "after must be the id of an event, or %s", latest)
	}
	q.after = text
	return nil
}

func (q *eventQuery) setBefore(text string) error {
	if id, ok := parseInt64(text); text != latest && (!ok || id < 1) {
		return animalstore.Errorf(animalstore.InvalidParameter, "before must be the id of an event, or %s", latest)
	}
	q.before = text
	return nil
}

func (q *eventQuery) setTypes(text string) (err error) {
	q.filter.Types, err = animalstore.ParseEventTypes(text)
	return err
}

func (q *eventQuery) setSubject(text string) error {
	if _, _, ok := animalstore.ParseEventSubject(text); !ok {
		return animalstore.Errorf(animalstore.InvalidParameter, "subject must be a resource and its id, such as pet/17")
	}
	q.filter.Subject = text
	return nil
}

func (q *eventQuery) setPetID(text string) error {
	id, ok := parseID(text)
	if !ok {
		return animalstore.Errorf(animalstore.InvalidParameter, "petId must be a positive integer")
	}
	q.filter.PetID = id
	return nil
}

func (q *eventQuery) setLimit(text string) error {
	n, ok := parseInt64(text)
	if !ok || n < 1 || n > maxLimit {
		return animalstore.Errorf(animalstore.InvalidParameter, "limit must be an integer from 1 to %d", maxLimit)
	}
	q.limit = int(n)
	return nil
}

func (q *eventQuery) setWait(text string) error {
	n, ok := parseInt64(text)
	if !ok || n < 0 || n > maxWait {
		return animalstore.Errorf(animalstore.InvalidParameter, "wait must be an integer from 0 to %d, in seconds", maxWait)
	}
	q.wait = time.Duration(n) * time.Second
	return nil
}

// resume continues a stream after the event in Last-Event-ID, if that is given.
func (q *eventQuery) resume(h http.Header) error {
	values := h["Last-Event-Id"]
	if len(values) == 0 || len(values) == 1 && values[0] == "" {
		return nil
	}
	if id, ok := parseInt64(values[0]); len(values) > 1 || !ok || id < 0 {
		return animalstore.Errorf(animalstore.InvalidParameter, "Last-Event-ID must be the id of an event")
	}
	q.after = values[0]
	return nil
}

// next is the link to the events after a position, or before it.
func (q *eventQuery) next(position int64) string {
	direction := "after"
	if q.before != "" {
		direction = "before"
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
