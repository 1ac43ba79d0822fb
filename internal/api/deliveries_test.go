package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"animalstore"
)

// deliveryBody is what GET of a delivery shows of what is sent.
type deliveryBody struct {
	Type      animalstore.EventType
	Timestamp animalstore.Time
	Data      map[string]any
}

// TestPingSamples: a ping of any type contains a valid resource of that type, which nobody
// takes for a real one.
func TestPingSamples(t *testing.T) {
	s := start(t)
	webhook := s.addWebhook(t)
	path := fmt.Sprint("/v1/webhooks/", webhook.ID)
	schemas := map[string]string{"pet": "Pet", "order": "Order", "photo": "Photo", "category": "Category", "key": "Key", "webhook": "Webhook"}
	for _, eventType := range animalstore.EventTypes {
		ping := s.do(t, call{method: "POST", path: path + "/ping", key: s.admin, body: fmt.Sprintf(`{"type":%q}`, eventType)})
		ping.want(t, http.StatusAccepted, "")
		var delivery struct {
			ID      int64
			EventID *int64
			Type    animalstore.EventType
			Body    deliveryBody
		}
		if err := json.Unmarshal(ping.body, &delivery); err != nil {
			t.Fatal(err)
		}
		got := s.do(t, call{path: fmt.Sprintf("%s/deliveries/%d", path, delivery.ID), key: s.admin})
		got.want(t, http.StatusOK, "")
		if err := json.Unmarshal(got.body, &delivery); err != nil {
			t.Fatal(err)
		}
		if delivery.Type != eventType || delivery.EventID != nil || delivery.Body.Type != eventType || delivery.Body.Timestamp != animalstore.At(s.clock.Now()) {
			t.Errorf("%s: got %s", eventType, got.body)
		}
		schema := responseDocument().Components.Schemas[schemas[eventType.Resource()]].Value
		if err := schema.VisitJSON(delivery.Body.Data); err != nil {
			t.Errorf("%s: got %v: %v", eventType, delivery.Body.Data, err)
		}
		if text := strings.ToLower(string(got.body)); eventType.Resource() != "order" && eventType.Resource() != "photo" && !strings.Contains(text, "sample") {
			t.Errorf("%s: got %s, want it to say that it is a sample", eventType, got.body)
		}
		if delivery.Body.Data["id"] != 999_999_999_999.0 {
			t.Errorf("%s: got the id %v, want one that no store has", eventType, delivery.Body.Data["id"])
		}
	}
}

// TestPingErrors: a ping of an unknown type isn't sent.
func TestPingErrors(t *testing.T) {
	s := start(t)
	path := fmt.Sprint("/v1/webhooks/", s.addWebhook(t).ID)
	for _, test := range []struct {
		body  string
		code  animalstore.Code
		field string
	}{
		{`{"type":"pet.sold"}`, "validation_failed", "type"},
		{`{"type":"pet.*"}`, "validation_failed", "type"},
		{`{"type":""}`, "validation_failed", "type"},
		{`{"type":null}`, "validation_failed", "type"},
		{`{"type":["pet.created"]}`, "validation_failed", "type"},
		{`{"type":"pet.created","type":"pet.created"}`, "malformed_json", ""},
		{`"pet.created"`, "malformed_json", ""},
		{`{`, "malformed_json", ""},
	} {
		got := s.do(t, call{method: "POST", path: path + "/ping", key: s.admin, body: test.body, bad: true})
		got.want(t, http.StatusBadRequest, test.code)
		got.wantMessage(t, test.field)
	}
	got := s.do(t, with(call{method: "POST", path: path + "/ping", key: s.admin, body: "type=pet.created", bad: true}, "Content-Type", "application/x-www-form-urlencoded"))
	got.want(t, http.StatusUnsupportedMediaType, animalstore.UnsupportedMediaType)
	if all := s.do(t, call{path: path + "/deliveries", key: s.admin}); strings.TrimSpace(string(all.body)) != "[]" {
		t.Errorf("got %s, want nothing sent", all.body)
	}
	for _, body := range []string{"", `{}`, `{"unknown":1}`, `{"type":"webhook.ping"}`} {
		got := s.do(t, call{method: "POST", path: path + "/ping", key: s.admin, body: body})
		got.want(t, http.StatusAccepted, "")
		if !strings.Contains(string(got.body), `"type":"webhook.ping"`) {
			t.Errorf("%s: got %s, want a webhook.ping", body, got.body)
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

// TestRetryDeliveriesErrors: a request that doesn't say which deliveries, or says it wrongly,
// is refused.
func TestRetryDeliveriesErrors(t *testing.T) {
	s := start(t)
	webhook := s.addWebhook(t)
	path := fmt.Sprintf("/v1/webhooks/%d/deliveries/retry", webhook.ID)
	future := s.clock.Now().Add(time.Second).UTC().Format(time.RFC3339Nano)
	for _, test := range []struct {
		body  string
		code  animalstore.Code
		field string
	}{
		{``, "malformed_json", ""},
		{`[]`, "malformed_json", ""},
		{`{"state":"failed"`, "malformed_json", ""},
		{`{}`, "validation_failed", "state"},
		{`{"stat":"failed"}`, "validation_failed", "state"},
		{`{"state":"delivered"}`, "validation_failed", "state"},
		{`{"state":"lost"}`, "validation_failed", "state"},
		{`{"state":""}`, "validation_failed", "state"},
		{`{"state":null}`, "validation_failed", "state"},
		{`{"state":"delivered","since":"2026-01-01T00:00:00Z"}`, "validation_failed", "state"},
		{`{"state":"failed","since":"` + future + `"}`, "validation_failed", "since"},
		{`{"since":"yesterday"}`, "validation_failed", "since"},
		{`{"since":"2026-01-01"}`, "validation_failed", "since"},
		{`{"since":1763198645}`, "validation_failed", "since"},
		{`{"since":null}`, "validation_failed", "since"},
	} {
		t.Run(test.body, func(t *testing.T) {
			got := s.do(t, call{method: "POST", path: path, key: s.admin, body: test.body, bad: true})
			got.want(t, http.StatusBadRequest, test.code)
			got.wantMessage(t, test.field)
		})
	}
}
