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
	"animalstore/internal/db"

	"github.com/getkin/kin-openapi/openapi3"
)

// TestEventExamples: the document's example of each type of event is what a webhook gets
// after a real change, and both fit the schema of the type.
func TestEventExamples(t *testing.T) {
	s := start(t)
	receiver, bodies := s.changeEverything(t)
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
			t.Errorf("%s: the example is %v, but webhook %d got %v", eventType, want, receiver, got[eventType])
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

// normalized returns JSON in which ids, sizes in bytes and times are equal.
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
				if name == "id" || name == "petId" || name == "bytes" {
					fields[name] = "a number"
				}
			}
		}
	}
	level(value)
	return value
}

// changeEverything makes a change for each type of event. It returns a webhook that gets
// all of them, and the bodies of its deliveries.
func (s *service) changeEverything(t *testing.T) (receiver int64, bodies []json.RawMessage) {
	t.Helper()
	send := func(method, path, body string) (id int64) {
		t.Helper()
		got := s.do(t, call{method: method, path: path, body: body, key: s.admin})
		if got.status >= 300 {
			t.Fatalf("%s %s: got %v", method, path, got)
		}
		var made struct{ ID int64 }
		json.Unmarshal(got.body, &made) // some have no body
		return made.ID
	}
	receiver = send("POST", "/v1/webhooks", `{"url":"https://example.com/all","types":["pet.*","photo.*","order.*","category.*","key.*","webhook.*"]}`)

	pet := send("POST", "/v1/pets", `{"name":"Rex","categoryId":7}`)
	send("PUT", "/v1/categories/7", `{"name":"Dogs"}`)
	photo := s.addPhotoOf(t, pet, 1600, 1200) // as in the example
	order := fmt.Sprint("/v1/store/orders/", send("POST", "/v1/store/orders", fmt.Sprintf(`{"petId":%d,"reference":"A-1042"}`, pet)))
	send("PATCH", order, `{"status":"approved"}`)
	send("PATCH", order, `{"status":"cancelled"}`)
	send("DELETE", fmt.Sprint("/v1/photos/", photo.ID), "")
	send("DELETE", fmt.Sprint("/v1/pets/", pet), "")

	keyID := send("POST", "/v1/keys", `{"name":"shop","plan":"pro"}`)
	key := fmt.Sprint("/v1/keys/", keyID)
	send("POST", key+"/rotate", "")
	send("PATCH", key, `{"plan":"business"}`)
	send("PATCH", key, `{"plan":"pro"}`)
	now := s.clock.Now().UnixMilli()
	s.remember(t, keyID, db.LimitState{BannedAt: now, BannedUntil: now + time.Hour.Milliseconds(), BanLevel: 1})
	send("POST", key+"/unban", "")
	send("DELETE", key, "")

	webhook := func() string {
		return fmt.Sprint("/v1/webhooks/", send("POST", "/v1/webhooks", `{"url":"https://example.com/hooks/pets","types":["pet.*"],"description":"the shop's search"}`))
	}
	one := webhook()
	send("PATCH", one, `{"state":"paused"}`)
	send("PATCH", one, `{"state":"active"}`)
	send("DELETE", one, "")
	s.disableWithPing(t, send("POST", webhook()+"/ping", ""))
	send("POST", fmt.Sprintf("/v1/webhooks/%d/ping", receiver), "")
	return receiver, s.deliveredBodies(t, receiver)
}

// disableWithPing lets a receiver respond to a ping with 410.
func (s *service) disableWithPing(t *testing.T, deliveryID int64) {
	t.Helper()
	now := animalstore.At(s.clock.Now())
	claimed, err := s.db.ClaimDeliveries(t.Context(), now, animalstore.At(now.Add(time.Minute)))
	if err != nil {
		t.Fatal(err)
	}
	for i := range claimed {
		if claimed[i].ID != deliveryID {
			continue
		}
		gone := http.StatusGone
		result := claimed[i].Result(animalstore.Attempt{Time: now, Status: &gone}, 0, 0)
		if _, _, err := s.db.FinishDelivery(t.Context(), result, now, animalstore.Time{}); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatalf("delivery %d isn't due", deliveryID)
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
