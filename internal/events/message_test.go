package events_test

import (
	"encoding/json"
	"testing"

	"animalstore"
	"animalstore/internal/events"
)

// TestMessagesAreEncodedAlike: an event is encoded as encoding/json does it, whatever
// request id its caller chose.
func TestMessagesAreEncodedAlike(t *testing.T) {
	for _, id := range []string{"01KA5Z", "", " ~!", `"`, `\`, "<", ">", "&", "\x00", "\x1f", "\x7f", "ä", "\u2028", "\xff", "a\tb"} {
		e := animalstore.Event{ID: 5, Type: animalstore.PetCreated, Time: animalstore.AtMilli(1e12), Subject: "pet/1", KeyID: new(int64(7)), RequestID: &id, Data: json.RawMessage(`{}`)}
		want, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if got := events.NewMessage(e).JSON(admin); string(got) != string(want) {
			t.Errorf("request id %q: got %s, want %s", id, got, want)
		}
	}
}
