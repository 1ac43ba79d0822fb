package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
)

// makeRoomForWebhook removes the oldest webhook if there are many.
func (s *service) makeRoomForWebhook(t testing.TB) {
	t.Helper()
	all, err := s.db.DB.Webhooks(t.Context(), db.Page{Limit: animalstore.MaxWebhooks})
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

// withSecret is a new or rotated webhook.
type withSecret struct {
	ID     int64
	Secret string
}

// TestWebhookLife creates, shows and removes a webhook, whose secret is shown only once.
func TestWebhookLife(t *testing.T) {
	s := start(t)
	key := s.key(t, animalstore.Admin)
	created := s.do(t, call{method: "POST", path: "/v1/webhooks", key: key, body: `{"url":"https://example.com/hook","description":"shop"}`})
	webhook := read[withSecret](t, created, 201)
	path := fmt.Sprint("/v1/webhooks/", webhook.ID)
	if !regexp.MustCompile(`^whsec_[0-9A-Za-z+/]{43}=$`).MatchString(webhook.Secret) || created.header.Get("Location") != path || created.header.Get("Cache-Control") != "no-store" {
		t.Errorf("got %s with Location %q", webhook.Secret, created.header.Get("Location"))
	}
	at := animalstore.At(s.clock.Now())
	shown := fmt.Sprintf(`{"id":%d,"url":"https://example.com/hook","types":["pet.*","order.*","category.*"],"description":"shop","state":"active","disabledReason":null,"createdAt":%q,"lastDeliveredAt":null,"lastFailedAt":null}`, webhook.ID, at)
	for body, eventType := range map[string]string{
		"": "webhook.ping", `{"unknown":1}`: "webhook.ping", `{"type":"key.revoked"}`: "key.revoked",
	} {
		got := s.do(t, call{method: "POST", path: path + "/ping", key: key, body: body})
		got.want(t, 202, "")
		if !strings.Contains(string(got.body), `"type":"`+eventType+`"`) {
			t.Errorf("ping %s: got %s, want the type %s", body, got.body, eventType)
		}
	}
	for path, want := range map[string]string{
		path:                   shown,
		"/v1/webhooks":         shown,
		path + "/deliveries":   `"type":"webhook.ping"`,
		path + "/deliveries/1": `"timestamp":`,
	} {
		if got := s.do(t, call{path: path, key: key}); !strings.Contains(string(got.body), want) || strings.Contains(string(got.body), "whsec_") {
			t.Errorf("%s: got %s, want %s in it, and no secret", path, got.body, want)
		}
	}
	s.do(t, call{method: "DELETE", path: path, key: key}).want(t, 204, "")
	s.do(t, call{path: path, key: key}).want(t, 404, animalstore.WebhookNotFound)
}

// idsIn returns the ids of the items of a page.
func idsIn(t testing.TB, page response) (ids []int64) {
	t.Helper()
	var items []struct{ ID int64 }
	if err := json.Unmarshal(page.body, &items); err != nil {
		t.Fatalf("got %v, want a page (%v)", page, err)
	}
	for _, item := range items {
		ids = append(ids, item.ID)
	}
	return ids
}

// answerPing sends a ping to a webhook, whose receiver responds with this status. It returns
// what was sent.
func (s *service) answerPing(t *testing.T, webhookID int64, status int) db.ClaimedDelivery {
	t.Helper()
	now := animalstore.At(s.clock.Now())
	if _, err := s.db.DB.PingWebhook(t.Context(), webhookID, animalstore.WebhookPing, now); err != nil {
		t.Fatal(err)
	}
	due, err := s.db.DB.ClaimDeliveries(t.Context(), now, animalstore.At(now.Add(time.Minute)))
	if err != nil || len(due) == 0 || due[0].WebhookID != webhookID {
		t.Fatalf("claimed %v, %v, want a ping of webhook %d", due, err, webhookID)
	}
	if _, _, err := s.db.DB.FinishDelivery(t.Context(), due[0].Result(animalstore.Attempt{Time: now, Status: &status}, 0, 0),
		now, animalstore.Time{}); err != nil {
		t.Fatal(err)
	}
	return due[0]
}

// refusedHost is a host that webhooks may not reach.
const refusedHost = "inside.example"

// checkWebhookURL stands in for the check of where a URL leads: names of examples don't
// resolve, and nothing is sent.
func checkWebhookURL(_ context.Context, url string) error {
	if strings.Contains(url, refusedHost) {
		return animalstore.Errorf(animalstore.ValidationFailed, "url must lead to an allowed address")
	}
	return nil
}

// TestWebhookErrors: an invalid request is refused before its precondition, and before
// anybody looks for the webhook.
func TestWebhookErrors(t *testing.T) {
	s := start(t)
	path := fmt.Sprint("/v1/webhooks/", s.addWebhook(t).ID)
	before := s.do(t, call{path: path, key: s.admin})
	future := s.clock.Now().Add(time.Second).UTC().Format(time.RFC3339Nano)
	for _, test := range []struct {
		method, rest, body string
		code               animalstore.Code
		field              string
	}{
		{"PATCH", "", ``, "malformed_json", ""},
		{"PATCH", "", `{"state":"paused","state":"paused"}`, "malformed_json", ""},
		{"PATCH", "", `{"url":null}`, "validation_failed", "url"},
		{"PATCH", "", `{"description":"till","url":"https://` + refusedHost + `/hook"}`, "validation_failed", "url"},
		{"PATCH", "", `{"types":[]}`, "validation_failed", "types"},
		{"PATCH", "", `{"types":["pet.*",7]}`, "validation_failed", "types"},
		{"PATCH", "", `{"description":null}`, "validation_failed", "description"},
		{"POST", "/ping", `{`, "malformed_json", ""},
		{"POST", "/ping", `{"type":"pet.*"}`, "validation_failed", "type"},
		{"POST", "/deliveries/retry", ``, "malformed_json", ""},
		{"POST", "/deliveries/retry", `{}`, "validation_failed", "state"},
		{"POST", "/deliveries/retry", `{"state":"delivered","since":"2026-01-01T00:00:00Z"}`, "validation_failed", "state"},
		{"POST", "/deliveries/retry", `{"state":"failed","since":"` + future + `"}`, "validation_failed", "since"},
	} {
		for _, to := range []string{path, "/v1/webhooks/4711"} {
			c := call{method: test.method, path: to + test.rest, body: test.body, key: s.admin, bad: true}
			got := s.do(t, with(c, "If-Match", `"x"`))
			got.want(t, http.StatusBadRequest, test.code)
			got.wantMessage(t, test.field)
		}
	}
	s.asAdmin(t, "POST", "/v1/webhooks", `{"url":"https://`+refusedHost+`/hook"}`).want(t, http.StatusBadRequest, animalstore.ValidationFailed)
	if after := s.do(t, call{path: path, key: s.admin}); string(after.body) != string(before.body) {
		t.Errorf("after refusals: got %s, want %s", after.body, before.body)
	}
	if sent := s.do(t, call{path: path + "/deliveries", key: s.admin}); string(sent.body) != "[]\n" {
		t.Errorf("after refusals: got deliveries %s, want none", sent.body)
	}
}

// TestWebhookRotation: the new secret signs at once, and the old one too if it has a grace
// period.
func TestWebhookRotation(t *testing.T) {
	s := start(t)
	for body, grace := range map[string]bool{"": true, `{"graceSeconds":60}`: true, `{"graceSeconds":0}`: false} {
		hook := read[withSecret](t, s.asAdmin(t, "POST", "/v1/webhooks", `{"url":"https://example.com/hook"}`), 201)
		want := []string{read[withSecret](t, s.asAdmin(t, "POST", fmt.Sprintf("/v1/webhooks/%d/rotate", hook.ID), body), 200).Secret}
		if grace {
			want = append(want, hook.Secret)
		}
		if got := s.answerPing(t, hook.ID, http.StatusNoContent).Secrets; !slices.Equal(got, want) {
			t.Errorf("%s: got %d secrets, want the new one and, in its grace period, the old one: %d", body, len(got), len(want))
		}
	}
}
