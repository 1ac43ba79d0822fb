package api

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/events"
)

// listEvents serves GET /v1/events: a page of events, or a stream of them.
func (s *Server) listEvents(w http.ResponseWriter, r *request) error {
	stream := prefersStream(r.Header)
	q, err := parseEventQuery(r.URL.RawQuery, stream)
	if err != nil {
		return err
	}
	if stream {
		if err := q.resume(r.Header); err != nil {
			return err
		}
		return s.streamEvents(w, r, q)
	}
	if q.Backwards() {
		return s.listEventsBefore(w, r, q)
	}
	reader, err := s.openReader(r, q)
	if err != nil {
		return err
	}
	defer reader.Close()
	messages, err := s.readEvents(w, r, reader, q)
	if err != nil {
		return expiredError(err)
	}
	setHeader(w, "Link", q.next(reader.Position()))
	return newEntity(encodeEvents(messages)).write(w, r, http.StatusOK)
}

// listEventsBefore serves a page that leads back to older events.
func (s *Server) listEventsBefore(w http.ResponseWriter, r *request, q *eventQuery) error {
	before := q.Before
	if q.Newest {
		if _, err := s.DB.PublishEvents(r.Context()); err != nil {
			return err
		}
		before = db.LatestEvents
	}
	messages, last, err := s.Events.ReadBefore(r.Context(), before, q.EventQuery, r.view(), q.limit)
	if err != nil {
		return expiredError(err)
	}
	if !q.Since.IsZero() {
		position, err := s.positionSince(r, q.Since)
		if err != nil {
			return err
		}
		messages = slices.DeleteFunc(messages, func(m events.Message) bool { return m.ID <= position })
		if last <= position+1 {
			last = 0
		}
	}
	if last != 0 {
		setHeader(w, "Link", q.next(last))
	}
	return newEntity(encodeEvents(messages)).write(w, r, http.StatusOK)
}

// openReader returns a reader at the position that a query asks for.
func (s *Server) openReader(r *request, q *eventQuery) (*events.Reader, error) {
	var position int64
	var err error
	switch {
	case q.Latest:
		position, err = s.DB.PublishEvents(r.Context())
	case q.After != nil: // also if a stream that began at a time is resumed
		position = *q.After
	case !q.Since.IsZero():
		position, err = s.positionSince(r, q.Since)
	default:
		position, _, err = s.DB.EventRange(r.Context())
	}
	if err != nil {
		return nil, err
	}
	return s.Events.NewReader(position, q.EventQuery, r.view()), nil
}

// positionSince returns the id to read after for the events at or after a time. A time in
// the future means those from now on, even if another instance's clock is already there.
func (s *Server) positionSince(r *request, since animalstore.Time) (int64, error) {
	if since.After(time.Now()) {
		return s.DB.PublishEvents(r.Context())
	}
	return s.DB.EventsSince(r.Context(), since)
}

// view is what the caller may see of events.
func (r *request) view() events.View {
	return events.View{KeyID: r.key.ID, Permissions: r.key.Permissions}
}

// maxScans is how often a waiting request reads from the database while nothing
// matches. After that the caller has to continue from there, because one request must
// not read the whole feed.
const maxScans = 10

// readEvents reads a page. If there is nothing to read, it waits as long as the query
// allows. While it waits, it occupies no database connection.
func (s *Server) readEvents(w http.ResponseWriter, r *request, reader *events.Reader, q *eventQuery) ([]events.Message, error) {
	if q.wait == 0 {
		messages, _, err := reader.ReadStored(r.Context(), q.limit)
		return messages, err
	}
	follower := s.followers.add(r)
	defer follower.unregister()
	// It fails with the response writers of some tests, which have no deadlines.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(q.wait + followTimes.Write))
	timer := time.NewTimer(q.wait)
	defer timer.Stop()
	for scans := 1; ; scans++ {
		r.restartClock()
		messages, more, err := reader.Read(r.Context(), q.limit)
		if err != nil || len(messages) > 0 || more && scans == maxScans {
			return messages, err
		}
		if more {
			continue
		}
		waits := time.Now()
		over := false
		select {
		case <-reader.More():
		case <-timer.C:
			over = true
		case <-follower.ended:
			over = true
		case <-s.drainBegun:
			over = true
		case <-r.Request.Context().Done():
			over = true
		}
		r.waited += time.Since(waits)
		if over {
			return nil, nil
		}
	}
}

// encodeEvents returns the body of a page.
func encodeEvents(messages []events.Message) []byte {
	size := len("[]\n")
	for _, m := range messages {
		size += len(m.JSON()) + len(",")
	}
	body := append(make([]byte, 0, size), '[')
	for i, m := range messages {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, m.JSON()...)
	}
	return append(body, "]\n"...)
}

// expiredError turns db.ErrEventsExpired into the error for a client that has missed events,
// and returns every other error unchanged.
func expiredError(err error) error {
	if !errors.Is(err, db.ErrEventsExpired) {
		return err
	}
	return animalstore.Errorf(animalstore.EventsExpired,
		"these events are no longer kept, or the id is from another store: read the lists again, then continue from the newest event (after=latest)")
}
