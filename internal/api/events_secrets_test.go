package api_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/keys"
)

// TestEventsHaveNoSecrets: nothing that is secret is in an event of any type.
func TestEventsHaveNoSecrets(t *testing.T) {
	s := start(t)
	from := s.latest(t, s.admin, "&limit=100&wait=5")
	secrets := []string{s.owner, s.admin, "Bearer", "ast_live_", "whsec_", "hash", "secret"}
	secrets = append(secrets, s.provokeKeyEvents(t)...)
	secrets = append(secrets, s.provokeWebhookEvents(t)...)
	s.do(t, call{method: "POST", path: "/v1/pets", body: `{"name":"Rex","categoryId":7}`}).want(t, 201, "")
	s.do(t, call{method: "POST", path: "/v1/store/orders", body: `{"petId":1}`}).want(t, 201, "")
	s.do(t, call{method: "PATCH", path: "/v1/store/orders/1", body: `{"status":"cancelled"}`}).want(t, 200, "")
	s.do(t, call{method: "DELETE", path: "/v1/pets/1"}).want(t, 204, "")

	const made = 6 + 4 + 7 // of the key, the webhook, and the pet with its order and category
	events := s.follow(t, s.admin, from, made).events
	missing := slices.Clone(animalstore.EventTypes)
	for _, e := range events {
		missing = slices.DeleteFunc(missing, func(t animalstore.EventType) bool { return t == e.Type })
		b, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range secrets {
			if shown := leaked(string(b), secret); shown != "" {
				t.Errorf("%s shows %q: %s", e.Type, shown, b)
			}
		}
	}
	if len(missing) > 0 {
		t.Errorf("got no event of the types %q, want one of each: provoke it here", missing)
	}
}

// leaked returns the form in which a text contains a secret, or "".
func leaked(text, secret string) string {
	if secret == "" {
		return "an empty secret: the test has none"
	}
	hash := keys.Hash(secret)
	text = strings.ToLower(text)
	for _, form := range []string{secret, hex.EncodeToString(hash[:]), base64.StdEncoding.EncodeToString(hash[:]), base64.RawURLEncoding.EncodeToString(hash[:])} {
		if strings.Contains(text, strings.ToLower(form)) {
			return form
		}
	}
	return ""
}

// made is a new key or webhook, which shows its secret.
type made struct {
	ID     int64
	Secret string
}

// make sends a request as admin whose response shows a secret.
func (s *service) make(t testing.TB, path, body string) (m made) {
	t.Helper()
	got := s.do(t, call{method: "POST", path: path, body: body, key: s.admin})
	if err := json.Unmarshal(got.body, &m); err != nil || got.status >= 300 || m.Secret == "" {
		t.Fatalf("POST %s: got %v (%v), want a secret", path, got, err)
	}
	return m
}

// provokeKeyEvents makes an event of each type of keys, and returns the secrets.
func (s *service) provokeKeyEvents(t testing.TB) []string {
	t.Helper()
	key := s.make(t, "/v1/keys", `{"name":"canary"}`)
	path := fmt.Sprint("/v1/keys/", key.ID)
	rotated := s.make(t, path+"/rotate", "")
	s.do(t, call{method: "PATCH", path: path, body: `{"name":"bird"}`, key: s.admin}).want(t, 200, "")
	now := s.clock.Now()
	ban := animalstore.LimitState{BannedAt: now.UnixMilli(), BannedUntil: now.Add(time.Hour).UnixMilli(), BanLevel: 1}
	if err := s.db.SaveLimitStates(t.Context(), []animalstore.KeyLimitState{{KeyID: key.ID, LimitState: ban}}); err != nil {
		t.Fatal(err)
	}
	s.do(t, call{method: "POST", path: path + "/unban", key: s.admin}).want(t, 200, "")
	s.do(t, call{method: "DELETE", path: path, key: s.admin}).want(t, 204, "")
	return []string{key.Secret, rotated.Secret}
}

// provokeWebhookEvents makes an event of each type of webhooks, and returns the secrets.
func (s *service) provokeWebhookEvents(t testing.TB) []string {
	t.Helper()
	hook := s.make(t, "/v1/webhooks", `{"url":"https://example.com/hook"}`)
	path := fmt.Sprint("/v1/webhooks/", hook.ID)
	rotated := s.make(t, path+"/rotate", "")
	s.do(t, call{method: "PATCH", path: path, body: `{"description":"shop"}`, key: s.admin}).want(t, 200, "")
	if _, err := s.db.UpdateWebhook(t.Context(), hook.ID, func(w *animalstore.Webhook) error {
		w.State = animalstore.WebhookInactive
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	s.do(t, call{method: "DELETE", path: path, key: s.admin}).want(t, 204, "")
	return []string{hook.Secret, strings.TrimPrefix(hook.Secret, "whsec_"), rotated.Secret, strings.TrimPrefix(rotated.Secret, "whsec_")}
}
