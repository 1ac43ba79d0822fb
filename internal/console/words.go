package console

import (
	"encoding/json"
	"html/template"
	"strings"
	"time"

	"animalstore"
)

// eventTitles are what people call the types of events.
var eventTitles = map[animalstore.EventType]string{
	animalstore.PetCreated: "Pet added", animalstore.PetUpdated: "Pet changed", animalstore.PetDeleted: "Pet removed",
	animalstore.PhotoCreated: "Photo added", animalstore.PhotoDeleted: "Photo removed",
	animalstore.OrderCreated: "Order placed", animalstore.OrderUpdated: "Order changed",
	animalstore.CategoryUpdated: "Category saved",
	animalstore.KeyCreated:      "Key created", animalstore.KeyUpdated: "Key changed", animalstore.KeyRotated: "Key rotated",
	animalstore.KeyRevoked: "Key revoked", animalstore.KeyBannedEvent: "Key banned", animalstore.KeyUnbanned: "Ban lifted",
	animalstore.WebhookCreated: "Webhook created", animalstore.WebhookUpdated: "Webhook changed",
	animalstore.WebhookDeleted: "Webhook removed", animalstore.WebhookDisabledEvent: "Webhook disabled",
}

// eventTitle is what people call a type of event, or all types of a resource.
func eventTitle(t string) string {
	if resource, all := strings.CutSuffix(t, ".*"); all {
		return "Any " + resource + " event"
	}
	if title := eventTitles[animalstore.EventType(t)]; title != "" {
		return title
	}
	return t
}

// Titles are what people call the types that are followed, as JSON: the script needs them for
// new events.
func (f feed) Titles() (string, error) {
	titles := map[string]string{}
	for t := range strings.SplitSeq(f.Follow, ",") {
		titles[t] = eventTitle(t)
	}
	text, err := json.Marshal(titles)
	return string(text), err
}

const (
	rfc3339Milli = "2006-01-02T15:04:05.000Z"
	readable     = "2 Jan 2006, 15:04:05 UTC"
)

// timeElement is a time in UTC, which the script turns into the reader's. The full time is
// its title.
func timeElement(t animalstore.Time, style, text string) template.HTML {
	u := t.UTC()
	return template.HTML(`<time datetime="` + u.Format(rfc3339Milli) + `" title="` + u.Format(readable) + `" data-style="` + style + `">` + text + `</time>`)
}

// when is a day and a time. The year is left out if it is this one.
func (c *Console) when(t animalstore.Time) template.HTML {
	layout := "2 Jan 2006, 15:04 UTC"
	switch {
	case t.IsZero():
		return "never"
	case t.UTC().Year() == c.Now().UTC().Year():
		layout = "2 Jan, 15:04 UTC"
	}
	return timeElement(t, "day", t.UTC().Format(layout))
}

// clock is the time of day.
func clock(t animalstore.Time) template.HTML {
	return timeElement(t, "time", t.UTC().Format("15:04 UTC"))
}

// ago is how long ago something happened.
func (c *Console) ago(t animalstore.Time) template.HTML {
	return timeElement(t, "age", age(c.Now().Sub(t.Time)))
}

func age(d time.Duration) string {
	if d < time.Minute {
		return "just now"
	}
	return inUnits(int64(d / time.Second))[0] + " ago"
}
