package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
)

// TestPingSamples: a ping of any type contains a valid resource of that type, with an id
// that no store has.
func TestPingSamples(t *testing.T) {
	schemas := map[string]string{"pet": "Pet", "order": "Order", "photo": "Photo", "category": "Category", "key": "Key", "webhook": "Webhook"}
	for _, eventType := range animalstore.EventTypes {
		data := []byte(db.PingData(eventType, animalstore.At(time.Now())))
		if err := checkBody(data, responseDocument().Components.Schemas[schemas[eventType.Resource()]].Value); err != nil {
			t.Errorf("%s: got %s: %v", eventType, data, err)
		}
		var resource struct{ ID int64 }
		if err := json.Unmarshal(data, &resource); err != nil || resource.ID != 999_999_999_999 {
			t.Errorf("%s: got the id %d, %v, want 999999999999", eventType, resource.ID, err)
		}
	}
}

// TestPing: a ping has the type that the request names.
func TestPing(t *testing.T) {
	s := start(t)
	path := fmt.Sprint("/v1/webhooks/", s.addWebhook(t).ID)
	for body, eventType := range map[string]string{"": "webhook.ping", `{"unknown":1}`: "webhook.ping", `{"type":"webhook.ping"}`: "webhook.ping", `{"type":"key.revoked"}`: "key.revoked"} {
		got := s.do(t, call{method: "POST", path: path + "/ping", key: s.admin, body: body})
		got.want(t, http.StatusAccepted, "")
		if !strings.Contains(string(got.body), `"type":"`+eventType+`"`) {
			t.Errorf("%s: got %s, want a ping of type %s", body, got.body, eventType)
		}
	}
}

// TestRetryDeliveries: a request chooses deliveries by state and time, and the response has
// their number.
func TestRetryDeliveries(t *testing.T) {
	s := start(t)
	webhook := s.addWebhook(t)
	begin := s.clock.Now()
	for range 2 {
		if _, err := s.db.DB.PingWebhook(t.Context(), webhook.ID, animalstore.PetCreated, animalstore.At(s.clock.Now())); err != nil {
			t.Fatal(err)
		}
		s.clock.advance(time.Hour)
	}
	halfPast := begin.Add(30 * time.Minute)
	for body, want := range map[string]int{
		`{"state":"pending","unknown":null}`: 2,
		`{"state":"failed"}`:                 0,
		`{"since":"1999-12-31T23:59:59Z"}`:   2,
		`{"state":"pending","since":"` + halfPast.In(time.FixedZone("", -3600)).Format(time.RFC3339) + `"}`: 1,
		`{"since":"` + animalstore.At(s.clock.Now()).String() + `"}`:                                        0,
	} {
		got := s.do(t, call{method: "POST", path: fmt.Sprintf("/v1/webhooks/%d/deliveries/retry", webhook.ID), key: s.admin, body: body})
		got.want(t, http.StatusAccepted, "")
		if want := fmt.Sprintf(`{"deliveries":%d}`, want); strings.TrimSpace(string(got.body)) != want {
			t.Errorf("%s: got %s, want %s", body, got.body, want)
		}
	}
}
