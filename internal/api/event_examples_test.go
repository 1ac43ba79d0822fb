package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"testing"
	"time"

	"animalstore"

	"github.com/getkin/kin-openapi/openapi3"
)

// wantExamples expects the document's example of each type of event among the bodies that a
// webhook got after real changes, and both to fit the schema of the type.
func wantExamples(t *testing.T, bodies []json.RawMessage) {
	t.Helper()
	got := map[animalstore.EventType][]any{}
	for _, body := range bodies {
		var message animalstore.WebhookMessage
		if err := json.Unmarshal(body, &message); err != nil {
			t.Fatal(err)
		}
		if err := checkBody(body, messageSchema(t, message.Type).Value); err != nil {
			t.Errorf("%s: %s: %v", message.Type, body, err)
		}
		data, err := message.DecodeData()
		if kind := reflect.TypeOf(data); err != nil || message.Type != animalstore.WebhookPing && (kind == nil || kind.PkgPath() != "animalstore") {
			t.Errorf("%s: DecodeData returned %T, %v", message.Type, data, err)
		}
		got[message.Type] = append(got[message.Type], normalized(t, body))
	}
	for _, eventType := range append(slices.Clone(animalstore.EventTypes), animalstore.WebhookPing) {
		example, err := json.Marshal(messageSchema(t, eventType).Value.Examples[0])
		if err != nil {
			t.Fatal(err)
		}
		if err := checkBody(example, messageSchema(t, eventType).Value); err != nil {
			t.Errorf("the example of %s: %v", eventType, err)
		}
		want := normalized(t, example)
		if !slices.ContainsFunc(got[eventType], func(sent any) bool { return reflect.DeepEqual(sent, want) }) {
			t.Errorf("%s: the example is %v, but the webhook got %v", eventType, want, got[eventType])
		}
	}
}

// messageSchema is the schema of the body that a webhook gets for a type.
func messageSchema(t *testing.T, eventType animalstore.EventType) *openapi3.SchemaRef {
	t.Helper()
	item := responseDocument().Webhooks[string(eventType)]
	if item == nil {
		t.Fatalf("the document has no webhook %s", eventType)
	}
	return item.Post.RequestBody.Value.Content["application/json"].Schema
}

// normalized returns JSON in which ids, sizes and times are equal.
func normalized(t *testing.T, body []byte) any {
	t.Helper()
	var value map[string]any
	if err := json.Unmarshal(body, &value); err != nil {
		t.Fatal(err)
	}
	var level func(map[string]any)
	level = func(fields map[string]any) {
		for name, field := range fields {
			switch field := field.(type) {
			case map[string]any:
				level(field)
			case string:
				if _, err := time.Parse(time.RFC3339, field); err == nil {
					fields[name] = "a time"
				}
			case float64:
				if slices.Contains([]string{"id", "petId", "bytes", "width", "height"}, name) {
					fields[name] = "a number"
				}
			}
		}
	}
	level(value)
	return value
}

// deliveredBodies returns the bodies of all deliveries to a webhook.
func (s *service) deliveredBodies(t *testing.T, webhookID int64) (bodies []json.RawMessage) {
	t.Helper()
	if _, err := s.db.PublishEvents(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.db.DispatchEvents(t.Context(), animalstore.At(s.clock.Now()), 1000); err != nil {
		t.Fatal(err)
	}
	path := fmt.Sprintf("/v1/webhooks/%d/deliveries", webhookID)
	for _, d := range read[[]animalstore.Delivery](t, s.do(t, call{path: path + "?limit=100", key: s.admin}), http.StatusOK) {
		one := s.do(t, call{path: fmt.Sprint(path, "/", d.ID), key: s.admin})
		bodies = append(bodies, read[animalstore.DeliveryWithBody](t, one, http.StatusOK).Body)
	}
	return bodies
}
