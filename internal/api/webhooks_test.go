package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
)

// makeRoomForWebhook removes the oldest webhook if there are many.
func (s *service) makeRoomForWebhook(t testing.TB) {
	t.Helper()
	all, err := s.db.DB.Webhooks(t.Context(), db.WebhookQuery{Limit: animalstore.MaxWebhooks})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < animalstore.MaxWebhooks-5 {
		return
	}
	err = s.db.DB.DeleteWebhook(t.Context(), all[len(all)-1].ID, func(*animalstore.Webhook) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
}

func (s *service) addWebhook(t testing.TB) animalstore.Webhook {
	t.Helper()
	s.makeRoomForWebhook(t)
	w := animalstore.NewWebhook{URL: "https://example.com/hook", Types: animalstore.DefaultEventPatterns}
	webhook, err := s.db.DB.CreateWebhook(t.Context(), w, "whsec_b25l", animalstore.At(s.clock.Now()))
	if err != nil {
		t.Fatal(err)
	}
	return webhook
}

// TestWebhookLife goes through all that can be done with a webhook.
func TestWebhookLife(t *testing.T) {
	s := start(t)
	key := s.key(t, animalstore.Admin)
	created := s.do(t, call{method: "POST", path: "/v1/webhooks", key: key, body: `{"url":"https://example.com/hook","description":"shop"}`})
	created.want(t, http.StatusCreated, "")
	var webhook struct {
		animalstore.Webhook
		Secret string
	}
	if err := json.Unmarshal([]byte(created.body), &webhook); err != nil {
		t.Fatal(err)
	}
	path := fmt.Sprint("/v1/webhooks/", webhook.ID)
	if !regexp.MustCompile(`^whsec_[0-9A-Za-z+/]{43}=$`).MatchString(webhook.Secret) || created.header.Get("Location") != path || created.header.Get("Cache-Control") != "no-store" {
		t.Errorf("got %s with Location %q", webhook.Secret, created.header.Get("Location"))
	}
	at := animalstore.At(s.clock.Now())
	shown := fmt.Sprintf(`{"id":%d,"url":"https://example.com/hook","types":["pet.*","order.*","category.*"],"description":"shop","state":"active","disabledReason":null,"createdAt":%q,"lastDeliveredAt":null,"lastFailedAt":null}`, webhook.ID, at)
	got := s.do(t, call{path: path, key: key})
	if strings.TrimSpace(string(got.body)) != shown {
		t.Errorf("got  %s\nwant %s", got.body, shown)
	}
	tag := got.header.Get("ETag")

	for _, test := range []struct {
		method, path, body string
		header             http.Header
		status             int
		code               animalstore.Code
		message            string
	}{
		{"PATCH", path, `{"state":"paused"}`, http.Header{"If-Match": {`"other"`}}, 412, "precondition_failed", ""},
		{"PATCH", path, `{"state":"disabled"}`, nil, 400, "validation_failed", "state must be active or paused"},
		{"PATCH", path, `{"types":[]}`, nil, 400, "validation_failed", "types must name at least one"},
		{"PATCH", path, `{"types":["pet.sold"]}`, nil, 400, "validation_failed", `types must be types of events`},
		{"PATCH", path, `{"url":"https://127.1/"}`, nil, 400, "validation_failed", "four decimal numbers"},
		{"PATCH", path, `{"url":null}`, nil, 400, "validation_failed", "url"},
		{"PATCH", path, `{"state":"paused"}`, http.Header{"If-Match": {tag}}, 200, "", ""},
		{"PATCH", path, `{"state":"active","types":["key.*"]}`, nil, 200, "", ""},
		{"POST", "/v1/webhooks", `{}`, nil, 400, "validation_failed", "url is required"},
		{"POST", "/v1/webhooks", `{"url":"https://user@example.com/"}`, nil, 400, "validation_failed", "user name"},
		{"POST", path + "/rotate", `{"graceSeconds":-1}`, nil, 400, "validation_failed", "graceSeconds"},
		{"POST", path + "/rotate", ``, nil, 200, "", ""},
		{"POST", path + "/ping", ``, nil, 202, "", ""},
		{"GET", path + "/deliveries?state=pending", "", nil, 200, "", ""},
		{"GET", path + "/deliveries?state=lost", "", nil, 400, "invalid_parameter", "state must be one of pending, delivered, failed"},
		{"POST", path + "/deliveries/1/retry", "", nil, 202, "", ""},
		{"POST", path + "/deliveries/77/retry", "", nil, 404, "delivery_not_found", ""},
		{"POST", path + "/deliveries/x/retry", "", nil, 404, "delivery_not_found", ""},
		{"POST", "/v1/webhooks/77/deliveries/1/retry", "", nil, 404, "webhook_not_found", ""},
		{"POST", path + "/deliveries//retry", "", nil, 404, "route_not_found", ""},
		{"GET", path + "/deliveries/1", "", nil, 404, "route_not_found", ""},
		{"GET", path + "/deliveries/1/retry", "", nil, 405, "method_not_allowed", ""},
		{"GET", "/v1/webhooks/0", "", nil, 404, "webhook_not_found", ""},
		{"GET", "/v1/webhooks/77/deliveries", "", nil, 404, "webhook_not_found", ""},
		{"DELETE", path, "", nil, 204, "", ""},
		{"DELETE", path, "", nil, 404, "webhook_not_found", ""},
	} {
		got := s.do(t, call{method: test.method, path: test.path, body: test.body, header: test.header, key: key, bad: test.status == 400 || test.status == 404})
		got.want(t, test.status, test.code)
		if !strings.Contains(string(got.body), test.message) {
			t.Errorf("%s %s %s: got %s, want %q in it", test.method, test.path, test.body, got.body, test.message)
		}
		if test.method == "GET" && strings.Contains(string(got.body), "whsec_") {
			t.Errorf("%s shows a secret", test.path)
		}
	}
}

// TestTooManyWebhooks: there can be 50.
func TestTooManyWebhooks(t *testing.T) {
	s := start(t)
	key := s.key(t, animalstore.Admin)
	for n := range 51 {
		status, code := http.StatusCreated, animalstore.Code("")
		if n == 50 {
			status, code = http.StatusConflict, animalstore.TooManyWebhooks
		}
		s.do(t, call{method: "POST", path: "/v1/webhooks", key: key, body: `{"url":"https://example.com/hook"}`}).want(t, status, code)
	}
}

// TestWebhookTag: what deliveries change about a webhook isn't part of its tag, and an
// unchanged one has no event.
func TestWebhookTag(t *testing.T) {
	s := start(t)
	key, webhook := s.key(t, animalstore.Admin), s.addWebhook(t)
	path := fmt.Sprint("/v1/webhooks/", webhook.ID)
	before := s.do(t, call{path: path, key: key})
	now := animalstore.At(s.clock.Now())
	if _, err := s.db.DB.PingWebhook(t.Context(), webhook.ID, now); err != nil {
		t.Fatal(err)
	}
	due, err := s.db.DB.ClaimDeliveries(t.Context(), now, animalstore.At(now.Add(time.Minute)))
	if err != nil || len(due) != 1 {
		t.Fatalf("claimed %d, %v, want the ping", len(due), err)
	}
	if _, _, err := s.db.DB.FinishDeliveries(t.Context(), []animalstore.DeliveryResult{due[0].Result(animalstore.Attempt{Time: now, Status: new(204)}, 0, 0)}, now, animalstore.Time{}); err != nil {
		t.Fatal(err)
	}
	after := s.do(t, call{path: path, key: key})
	if string(before.body) == string(after.body) || before.header.Get("ETag") != after.header.Get("ETag") {
		t.Errorf("got %s with tag %s, want lastDeliveredAt and the tag %s", after.body, after.header.Get("ETag"), before.header.Get("ETag"))
	}
}
