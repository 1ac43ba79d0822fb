package events

import (
	"bytes"
	"fmt"
	"sync/atomic"

	"animalstore"
)

// Message is an event for one reader, ready to send. However many readers there are, the
// event is encoded once for each of the ways in which readers may see who made the change.
type Message struct {
	*shared
	view    View
	keyName *string // of the key that made the change; nil if it has none
}

// shared is what the messages of an event for all readers have in common.
type shared struct {
	animalstore.Event
	forms [forms]atomic.Pointer[encoded]
}

type encoded struct {
	keyName *string
	frame   []byte // as a server-sent event
	start   int    // where its JSON begins
}

// newShared appends events to a list.
func newShared(list []*shared, events []animalstore.Event) []*shared {
	all := make([]shared, len(events)) // one allocation, because there may be thousands
	for i := range events {
		all[i].Event = events[i]
		list = append(list, &all[i])
	}
	return list
}

// Frame is the event as a server-sent event. It must not be changed.
func (m Message) Frame() []byte { return m.encoded().frame }

// JSON is the event as JSON, without a line break. It must not be changed.
func (m Message) JSON() []byte {
	e := m.encoded()
	return e.frame[e.start : len(e.frame)-len("\n\n")]
}

// encoded returns the form for the reader. It is encoded again after the key was renamed.
func (m Message) encoded() *encoded {
	form := m.view.form(&m.Event)
	kept := m.forms[form].Load()
	if kept == nil || !sameName(kept.keyName, m.keyName) {
		kept = encode(m.Event, form, m.keyName)
		m.forms[form].Store(kept)
	}
	return kept
}

func sameName(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }

func encode(ev animalstore.Event, form form, keyName *string) *encoded {
	if form != full {
		ev.RequestID = nil
	}
	if ev.KeyName = keyName; form == anonymous {
		ev.KeyID, ev.KeyName = nil, nil
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "id: %d\nevent: %s\ndata: ", ev.ID, ev.Type)
	start := b.Len()
	data, err := animalstore.EncodeJSON(ev)
	if err != nil {
		panic(err) // our types can always be encoded
	}
	b.Write(data)
	b.WriteString("\n\n")
	return &encoded{keyName, b.Bytes(), start}
}
