package events

import (
	"bytes"
	"fmt"
	"sync"

	"animalstore"
)

// Message is an event ready to send. However many readers there are, it is
// encoded at most twice: for readers who may see who made the change, and for
// the others.
type Message struct {
	animalstore.Event
	full, redacted encoded
}

type encoded struct {
	once  sync.Once
	frame []byte // as a server-sent event
	start int    // where its JSON begins
}

// NewMessage returns the message of an event.
func NewMessage(e animalstore.Event) *Message { return &Message{Event: e} }

// newMessages appends the messages of events.
func newMessages(messages []*Message, events []animalstore.Event) []*Message {
	all := make([]Message, len(events)) // one allocation, because there may be thousands
	for i := range events {
		all[i].Event = events[i]
		messages = append(messages, &all[i])
	}
	return messages
}

// View describes the reader of a message.
type View struct {
	KeyID int64
	Admin bool // the key may see the events of keys and webhooks, and who made a change
}

// Sees reports whether the reader may see events of this type.
func (v View) Sees(t animalstore.EventType) bool { return v.Admin || !t.AdminOnly() }

// isFull reports whether the reader may see who made the change.
func (v View) isFull(e *animalstore.Event) bool {
	return v.Admin || e.KeyID != nil && *e.KeyID == v.KeyID
}

// Frame is the event as a server-sent event. It must not be changed.
func (m *Message) Frame(v View) []byte { return m.encoded(v).frame }

// JSON is the event as JSON, without a line break. It must not be changed.
func (m *Message) JSON(v View) []byte {
	e := m.encoded(v)
	return e.frame[e.start : len(e.frame)-len("\n\n")]
}

func (m *Message) encoded(v View) *encoded {
	if m.KeyID == nil && m.RequestID == nil || v.isFull(&m.Event) {
		m.full.once.Do(func() { m.full.encode(m.Event) })
		return &m.full
	}
	m.redacted.once.Do(func() {
		e := m.Event
		e.KeyID, e.RequestID = nil, nil
		m.redacted.encode(e)
	})
	return &m.redacted
}

func (x *encoded) encode(ev animalstore.Event) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "id: %d\nevent: %s\ndata: ", ev.ID, ev.Type)
	x.start = b.Len()
	data, err := animalstore.EncodeJSON(ev)
	if err != nil {
		panic(err) // our types can always be encoded
	}
	b.Write(data)
	b.WriteString("\n\n")
	x.frame = b.Bytes()
}
