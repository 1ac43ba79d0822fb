package console

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"animalstore"
	"animalstore/client"
)

const (
	eventRows = 50
	// eventWindow is how far back a filtered page looks: few of the latest may match.
	eventWindow = 1000
	latestRows  = 10
)

// eventRow is an event in a table.
type eventRow struct {
	animalstore.Event
	Path    string   // of the page about its subject, which may be gone; "" if there is none
	Summary []string // what the resource looked like then, in a few words
}

type eventsPage struct {
	frame
	Rows    []eventRow // newest first
	Types   []string   // to choose from
	Type    string
	Subject string
	Who     bool  // show who did it
	Newest  int64 // follow from here; 0: this isn't the end of the feed
	Newer   int64 // the next page begins after this; 0: none
	Older   int64 // the page before; -1: none
	Expired bool
}

// listEvents serves GET /console/events: the latest events that match, or those after
// the one in the URL.
func (v *visit) listEvents() error {
	query := v.r.URL.Query()
	p := eventsPage{frame: v.c.frame(v, "Events"), Type: query.Get("type"), Subject: strings.TrimSpace(query.Get("subject")), Who: v.may(admin), Older: -1}
	p.Types = v.eventChoices()
	options := client.EventsOptions{Subject: p.Subject}
	if p.Type != "" {
		options.Types = []string{p.Type}
	}
	window := int64(eventRows)
	if p.Type != "" || p.Subject != "" {
		window = eventWindow
	}
	newest, err := v.newestEvent()
	if err != nil {
		return err
	}
	after, given := max(0, newest-window), query.Get("after") != ""
	if p.Subject != "" {
		after = 0 // those of one resource are found wherever they are
	}
	if given {
		if after, err = strconv.ParseInt(query.Get("after"), 10, 64); err != nil || after < 0 {
			return &client.Error{Status: http.StatusBadRequest, Err: animalstore.Errorf(animalstore.InvalidParameter, "after must be the id of an event")}
		}
	}
	options.After = after
	limit := eventRows
	if !given && window == eventWindow {
		limit = 100 // those at the end are shown
	}
	events, next, err := v.api.ListEventPage(v.r.Context(), options, limit)
	if codeOf(err) == animalstore.EventsExpired { // begin with the oldest that is kept
		p.Expired, options.After = given, 0
		events, next, err = v.api.ListEventPage(v.r.Context(), options, limit)
	} else if after > 0 && p.Subject == "" {
		p.Older = max(0, after-window)
	}
	if err != nil {
		return err
	}
	p.Rows = rowsOf(events)
	if p.Newer = next; next >= newest {
		p.Newer, p.Newest = 0, next
	}
	return v.render(http.StatusOK, "events", p)
}

// newestEvent returns the id of the newest event.
func (v *visit) newestEvent() (int64, error) {
	_, newest, err := v.api.ListEventPage(v.r.Context(), client.EventsOptions{Latest: true}, 1)
	return newest, err
}

// eventChoices are the filters that make sense for the key.
func (v *visit) eventChoices() (all []string) {
	last := ""
	for _, t := range animalstore.EventTypes {
		if t.AdminOnly() && !v.may(admin) {
			continue
		}
		if r := t.Resource(); r != last {
			last = r
			all = append(all, r+".*")
		}
		all = append(all, string(t))
	}
	return all
}

// latestEvents returns the last few events, newest first, and the id of the newest.
func (v *visit) latestEvents() ([]eventRow, int64, error) {
	newest, err := v.newestEvent()
	if err != nil || newest == 0 {
		return nil, 0, err
	}
	events, _, err := v.api.ListEventPage(v.r.Context(), client.EventsOptions{After: max(0, newest-latestRows)}, latestRows)
	if codeOf(err) == animalstore.EventsExpired { // most of them are no longer kept
		return nil, newest, nil
	}
	return rowsOf(events), newest, err
}

// history are events of a resource.
type history struct {
	Subject string
	Rows    []eventRow // newest first
	Later   int64      // there may be more after this one, unless it is 0
}

// historyOf returns the events of a resource that are kept.
func (v *visit) historyOf(subject string) (history, error) {
	const most = 100
	events, next, err := v.api.ListEventPage(v.r.Context(), client.EventsOptions{Subject: subject}, most)
	h := history{Subject: subject, Rows: rowsOf(events)}
	if len(events) == most {
		h.Later = next
	}
	return h, err
}

// streamChecks is how often a stream looks whether its session has ended. The API ends
// it with the key.
const streamChecks = 2 * time.Second

// streamEvents serves GET /console/events/stream: the stream of the API, for the script
// of the console. It is charged as one request.
func (v *visit) streamEvents() error {
	ctx, cancel := context.WithCancel(v.r.Context())
	defer cancel()
	go func() {
		tick := time.NewTicker(streamChecks)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if _, found, err := v.c.Sessions.FindSession(ctx, v.token, v.c.Now()); err == nil && !found {
				cancel()
			}
		}
	}()
	in, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://console/v1/events?"+v.r.URL.RawQuery, nil)
	if err != nil {
		return err
	}
	in.Header.Set("Accept", "text/event-stream")
	if last := v.r.Header["Last-Event-Id"]; last != nil {
		in.Header["Last-Event-Id"] = last
	}
	in.Proto, in.ProtoMajor, in.ProtoMinor = v.r.Proto, v.r.ProtoMajor, v.r.ProtoMinor
	t := &transport{v.c.Server, v.r, &v.secret}
	t.server.ServeAPI(v.w, t.incoming(in), t.secret)
	return nil
}

// rowsOf turns events into rows, newest first.
func rowsOf(events []animalstore.Event) []eventRow {
	rows := make([]eventRow, len(events))
	for i, e := range events {
		row := eventRow{Event: e, Summary: summarize(e)}
		if kind, id, ok := strings.Cut(e.Subject, "/"); ok && e.Type != animalstore.PetDeleted {
			switch kind {
			case "pet", "order", "key":
				row.Path = "/console/" + kind + "s/" + id
			case "category":
				row.Path = "/console/categories/" + id
			}
		}
		rows[len(events)-1-i] = row
	}
	return rows
}

// summarize says in a few words what a resource looked like after a change.
func summarize(e animalstore.Event) (parts []string) {
	var data struct {
		Name   string `json:"name"`
		Status string `json:"status"`
		Plan   string `json:"plan"`
		PetID  int64  `json:"petId"`
		URL    string `json:"url"`
		State  string `json:"state"`
	}
	if json.Unmarshal(e.Data, &data) != nil {
		return nil
	}
	if data.PetID != 0 {
		parts = append(parts, "pet "+strconv.FormatInt(data.PetID, 10))
	}
	for _, part := range []string{data.Name, data.URL, data.Status, data.State, data.Plan} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}
