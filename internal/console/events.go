package console

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"animalstore"
)

const (
	eventRows  = 50
	latestRows = 10
	// eventCalls is how often a page asks for more events while few of them match.
	eventCalls = 3
)

// eventRow is an event in a table.
type eventRow struct {
	animalstore.Event
	Path    string   // of the page about its subject, which may be gone; "" if there is none
	Summary []detail // what the resource looked like then, in a few words
	By      string   // who made it
	ByPath  string   // of the page about that key; "" if there is none
	kind    string   // of its subject
	id      int64    // of its subject
	petID   int64    // of the pet that its subject belongs to; 0 if there is none
}

// detail is a word about an event.
type detail struct {
	Text string
	Path string // of the page about it; "" if there is none
}

// Day is when it happened, in UTC. The script groups by the reader's days.
func (r eventRow) Day() string { return r.Time.UTC().Format("Monday, 2 January 2006") }

// SubjectName is the subject as people write it, such as "pet 17".
func (r eventRow) SubjectName() string { return strings.Replace(r.Subject, "/", " ", 1) }

// feed is a table of events.
type feed struct {
	Rows    []eventRow // newest first
	Type    string     // the filters
	Subject string
	Pet     int64            // its events, and those of its photos and orders; 0: of all
	Start   animalstore.Time // nothing before
	After   int64            // follow from here; 0: there are newer events than these
	Follow  string           // the types to follow, separated by commas
	Older   string           // the page of older events; "" if these are the oldest

	Requests bool // show the ids of requests too
}

type eventsPage struct {
	frame
	feed
	Types []string // to choose from
	Newer string   // the page of newer events; "" if these are the newest
	Back  bool     // these aren't the newest
}

// listEvents serves GET /console/events: the latest events that match, or those before or
// after the one in the URL.
func (v *visit) listEvents() error {
	query := v.r.URL.Query()
	p := eventsPage{frame: v.frame("Events"), Types: v.eventChoices()}
	p.Type, p.Subject, p.Requests = query.Get("type"), strings.TrimSpace(query.Get("subject")), v.may(admin)
	var err error
	if p.Pet, err = idFilter(query, "pet"); err != nil {
		return err
	}
	before, err := idFilter(query, "before")
	if err != nil {
		return err
	}
	after, err := idFilter(query, "after")
	if err != nil {
		return err
	}
	if p.Start, err = sinceTime(query.Get("since")); err != nil {
		return err
	}
	switch {
	case before != 0:
		p.Back, p.Newer = true, p.pageAt("after", before-1)
		_, err = v.readOlder(&p.feed, before, eventCalls, eventRows)
	case after != 0:
		var atEnd bool
		if p.Newer, atEnd, err = v.readNewer(&p.feed, after); err == nil && atEnd {
			return v.goTo(p.pageAt("", 0), "") // that page is full, and live
		}
		p.Back = true
	default:
		err = v.readLatest(&p.feed, eventCalls, eventRows)
	}
	if codeOf(err) == animalstore.EventsExpired && p.Back {
		return v.goTo(p.pageAt("", 0), "")
	}
	if err != nil {
		return err
	}
	if err := v.unlinkGone(p.feed.Rows); err != nil {
		return err
	}
	return v.render(http.StatusOK, "events", p)
}

// sinceTime reads the time that a feed begins at, if there is one. A date is its midnight
// in UTC.
func sinceTime(text string) (animalstore.Time, error) {
	if text == "" {
		return animalstore.Time{}, nil
	}
	at, err := time.Parse(time.DateOnly, text)
	if err != nil {
		at, err = time.Parse(time.RFC3339, text)
	}
	if err != nil {
		return animalstore.Time{}, badField("", "since must be a date such as 2026-11-17, or a time such as 2026-11-17T09:00:00Z")
	}
	return animalstore.At(at), nil
}

// pageAt is the address of a page with the same filters.
func (f feed) pageAt(direction string, id int64) string {
	since, at, pet := "", "", ""
	if f.Pet > 0 {
		pet = strconv.FormatInt(f.Pet, 10)
	}
	if !f.Start.IsZero() {
		since = f.Start.UTC().Format(rfc3339Milli)
	}
	if id > 0 {
		at = strconv.FormatInt(id, 10)
	}
	return withQuery("/console/events", "type", f.Type, "subject", f.Subject, "pet", pet, "since", since, direction, at)
}

// Latest is the address of the newest events with the same filters.
func (f feed) Latest() string { return f.pageAt("", 0) }

func (f *feed) options() animalstore.EventQuery {
	return animalstore.EventQuery{Types: animalstore.EventPatterns(f.Type), Subject: f.Subject, PetID: f.Pet}
}

// readLatest reads the newest events, to be followed from there. Of events that match a
// filter, the newest may be long ago: they are followed from the newest of all.
func (v *visit) readLatest(f *feed, calls, rows int) error {
	f.Follow = v.typesOf(f.Type)
	if f.Type == "" && f.Subject == "" && f.Pet == 0 {
		var err error
		if f.After, err = v.readOlder(f, 0, calls, rows); err != nil || f.After != 0 {
			return err
		}
	}
	_, newest, err := v.api.ListEventPage(v.r.Context(), animalstore.EventQuery{Latest: true}, 1)
	if err != nil {
		return err
	}
	first, err := v.readOlder(f, 0, calls, rows)
	f.After = max(1, newest, first)
	return err
}

// readOlder reads events before an id, or the newest if that is 0, and returns the id of
// the newest of them.
func (v *visit) readOlder(f *feed, before int64, calls, rows int) (first int64, err error) {
	o := f.options()
	o.Before, o.Newest, o.Since = before, before == 0, f.Start
	for ; calls > 0 && len(f.Rows) < rows; calls-- {
		events, next, err := v.api.ListEventPage(v.r.Context(), o, rows-len(f.Rows))
		if err != nil {
			return 0, err
		}
		// The list ends up to a minute before the start.
		events = slices.DeleteFunc(events, func(e animalstore.Event) bool { return e.Time.Before(f.Start.Time) })
		f.Rows = append(f.Rows, v.rowsOf(events)...)
		o.Before, o.Newest = next, false
		if next == 0 {
			break
		}
		f.Older = f.pageAt("before", next)
	}
	if o.Before == 0 {
		f.Older = ""
	}
	if len(f.Rows) > 0 {
		first = f.Rows[0].ID
	}
	return first, nil
}

// readNewer reads the events that follow an id, shown newest first like all. atEnd reports
// that there are no others after them.
func (v *visit) readNewer(f *feed, after int64) (newer string, atEnd bool, err error) {
	o := f.options()
	o.After = &after
	f.Older = f.pageAt("before", after+1)
	var events []animalstore.Event
	for range eventCalls {
		more, next, err := v.api.ListEventPage(v.r.Context(), o, eventRows-len(events))
		if err != nil {
			return "", false, err
		}
		events = append(events, more...)
		atEnd, o.After = next == *o.After, &next
		if atEnd || len(events) == eventRows {
			break
		}
	}
	slices.Reverse(events)
	f.Rows = v.rowsOf(events)
	return f.pageAt("after", *o.After), atEnd, nil
}

// typesOf returns the types that a filter stands for and the key may see, separated by
// commas. "" stands for all.
func (v *visit) typesOf(filter string) string {
	types := animalstore.EventTypes
	if filter != "" {
		types = animalstore.EventPatterns(filter).Types()
	}
	var names []string
	for _, t := range types {
		if v.key.Permissions.Allows(t.Permission()) {
			names = append(names, string(t))
		}
	}
	return strings.Join(names, ",")
}

// eventChoices are the filters that make sense for the key.
func (v *visit) eventChoices() (all []string) {
	last := ""
	for _, t := range animalstore.EventTypes {
		if !v.key.Permissions.Allows(t.Permission()) {
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
	v.serveAPI(v.w, v.transport(nil).Incoming(in))
	return nil
}

// rowsOf turns events, newest first, into rows. A row has no link if it or a newer one
// removes its subject.
func (v *visit) rowsOf(events []animalstore.Event) []eventRow {
	rows := make([]eventRow, len(events))
	removed := map[string]bool{}
	for i, e := range events {
		var data eventData
		if json.Unmarshal(e.Data, &data) != nil {
			data = eventData{}
		}
		kind, id, _ := animalstore.ParseEventSubject(e.Subject) // the API sends no other
		rows[i] = eventRow{Event: e, Summary: data.summary(), By: actor(e), kind: kind, id: id, petID: data.PetID}
		if e.KeyID != nil && v.may(admin) {
			rows[i].ByPath = keyPath(*e.KeyID)
		}
		if strings.HasSuffix(string(e.Type), ".deleted") {
			removed[e.Subject] = true
		}
		if !removed[e.Subject] {
			rows[i].Path = rows[i].path(data)
		}
	}
	return rows
}

// path is the page of an event's subject.
func (r eventRow) path(data eventData) string {
	switch r.kind {
	case "category":
		return "/console/categories/" + strconv.FormatInt(r.id, 10)
	case "photo":
		return imagePath(animalstore.Photo{ID: r.id, CreatedAt: data.CreatedAt})
	}
	return "/console/" + r.kind + "s/" + strconv.FormatInt(r.id, 10)
}

// eventData is what the console shows of the data of events.
type eventData struct {
	Name      string           `json:"name"`
	Status    string           `json:"status"`
	Plan      string           `json:"plan"`
	PetID     int64            `json:"petId"`
	URL       string           `json:"url"`
	State     string           `json:"state"`
	Width     int64            `json:"width"`
	Height    int64            `json:"height"`
	CreatedAt animalstore.Time `json:"createdAt"`
}

// summary says in a few words what a resource looked like after a change.
func (data eventData) summary() (parts []detail) {
	if data.PetID != 0 {
		id := strconv.FormatInt(data.PetID, 10)
		parts = append(parts, detail{"pet " + id, "/console/pets/" + id})
	}
	if data.Width != 0 {
		parts = append(parts, detail{Text: number(data.Width) + " × " + number(data.Height)})
	}
	for _, part := range []string{data.Name, data.URL, data.Status, data.State, data.Plan} {
		if part != "" {
			parts = append(parts, detail{Text: part})
		}
	}
	return parts
}
