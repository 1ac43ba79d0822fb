package console

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"animalstore"
)

const (
	historyRows = 50
	// historyReads is how many events one call reads. Those that aren't shown tell what the
	// others changed.
	historyReads = 100
)

// history is what happened to a resource, newest first.
type history struct {
	Topic string // the subject of the page itself
	Past  []pastEvent
	Older string // the page of older events; "" if these are the oldest
}

// pastEvent is an event in a history.
type pastEvent struct {
	eventRow
	Title   string
	Changes []fieldChange
}

// fieldChange is a field before and after a change. Before is "" if it had no value, or
// isn't known.
type fieldChange struct {
	Field, Before, After string
	Known                bool // Before is known
}

// readHistory reads the newest events of a resource, with one call. Those of a pet include
// its photos and orders.
func (v *visit) readHistory(kind string, id int64) (h history, err error) {
	if !v.may(eventsRead) {
		return h, nil
	}
	h.Topic = animalstore.EventSubject(kind, id)
	of := feed{Subject: h.Topic}
	if kind == "pet" {
		of = feed{Pet: id}
	}
	o := of.options()
	o.Newest = true
	events, next, err := v.api.ListEventPage(v.r.Context(), o, historyReads)
	if err != nil {
		return h, err
	}
	changes := changesOf(events)
	shown := min(historyRows, len(events))
	for i, row := range v.rowsOf(events[:shown]) {
		title, others := pastTitle(row.Event, changes[i])
		h.Past = append(h.Past, pastEvent{row, title, others})
	}
	if next != 0 || shown < len(events) {
		h.Older = of.pageAt("before", events[shown-1].ID)
	}
	return h, nil
}

// changesOf returns what each event changed, compared with the event before of the same
// subject. Of one whose event before isn't known, it returns what the resource was like.
func changesOf(events []animalstore.Event) [][]fieldChange {
	all := make([][]fieldChange, len(events))
	before := map[string]map[string]any{}
	for i, e := range slices.Backward(events) { // the oldest first
		var data map[string]any
		if json.Unmarshal(e.Data, &data) != nil {
			continue
		}
		last, known := before[e.Subject]
		before[e.Subject] = data
		if strings.HasSuffix(string(e.Type), ".deleted") {
			continue
		}
		for _, f := range shownFields {
			old, now := fieldText(f.name, last), fieldText(f.name, data)
			if old != now {
				all[i] = append(all[i], fieldChange{f.label, old, now, known})
			}
		}
	}
	return all
}

// shownFields are the fields of resources whose changes a history shows.
var shownFields = []struct{ name, label string }{
	{"name", "name"}, {"categoryId", "category"}, {"status", "status"}, {"reference", "reference"}, {"note", "note"},
	{"plan", "plan"}, {"limits", "limits"}, {"permissions", "permissions"}, {"networks", "networks"}, {"expiresAt", "expiry"}, {"suspendedAt", "suspended"},
	{"url", "URL"}, {"types", "events"}, {"description", "description"}, {"state", "state"},
}

// fieldText is the value of a field as people read it, or "".
func fieldText(name string, data map[string]any) string {
	switch value := data[name].(type) {
	case nil:
		return ""
	case string:
		return value
	case float64:
		return fmt.Sprintf("%.0f", value)
	case []any:
		texts := make([]string, len(value))
		for i, v := range value {
			texts[i] = fmt.Sprint(v)
		}
		return strings.Join(texts, ", ")
	case map[string]any:
		return fmt.Sprintf("%v per minute, %v per day", value["perMinute"], value["perDay"])
	}
	return fmt.Sprint(data[name])
}

// pastTitle is what happened, such as "Order 12 approved", and the changes that it doesn't tell.
func pastTitle(e animalstore.Event, changes []fieldChange) (title string, others []fieldChange) {
	title = eventTitle(string(e.Type))
	kind, id, _ := animalstore.ParseEventSubject(e.Subject)
	if kind != "order" {
		return title, changes
	}
	what := strings.TrimPrefix(title, "Order ")
	for _, c := range changes {
		if c.Field == "status" && (c.Known || e.Type == animalstore.OrderCreated) {
			what = c.After
		} else {
			others = append(others, c)
		}
	}
	return fmt.Sprintf("Order %d %s", id, what), others
}

// categoryChanged reports whether the history of a pet names other categories than its own.
func (h history) categoryChanged() bool {
	return slices.ContainsFunc(h.Past, func(e pastEvent) bool {
		return slices.ContainsFunc(e.Changes, func(c fieldChange) bool { return c.Field == "category" && c.Known })
	})
}

// nameCategories replaces the ids of categories by their names. Those without a name stay.
func (h history) nameCategories(known *categories) {
	name := func(text string) string {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil { // it had none
			return text
		}
		return cmp.Or(known.Name(id), text)
	}
	for _, e := range h.Past {
		for i, c := range e.Changes {
			if c.Field == "category" {
				e.Changes[i].Before, e.Changes[i].After = name(c.Before), name(c.After)
			}
		}
	}
}

// openOrder is the order that reserves a pet, as its newest event tells, or nil.
func (h history) openOrder() *animalstore.Order {
	for _, e := range h.Past {
		if data, err := e.DecodeData(); err == nil {
			if order, ok := data.(animalstore.Order); ok {
				if order.Status.Open() {
					return &order
				}
				return nil
			}
		}
	}
	return nil
}

// actor says who made a change.
func actor(e animalstore.Event) string {
	switch {
	case e.KeyID != nil:
		return cmp.Or(deref(e.KeyName), fmt.Sprint("key ", *e.KeyID))
	case e.Actor == animalstore.ActorKey:
		return "another key"
	case e.Actor == animalstore.ActorCommandLine:
		return "command line"
	}
	return "the service"
}

func deref(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}
