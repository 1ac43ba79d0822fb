package api_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"animalstore"
)

// refusedHost is a host that webhooks may not lead to.
const refusedHost = "inside.example"

// checkWebhookURL stands in for the check of where a URL leads: names of examples don't
// resolve, and nothing is sent.
func checkWebhookURL(_ context.Context, url string) error {
	if strings.Contains(url, refusedHost) {
		return animalstore.Errorf(animalstore.ValidationFailed, "url must lead to an allowed address")
	}
	return nil
}

// TestWebhookLeadsInside: an address that webhooks may not lead to is refused when it is
// saved, and nothing is saved then.
func TestWebhookLeadsInside(t *testing.T) {
	s := start(t)
	path := fmt.Sprint("/v1/webhooks/", s.addWebhook(t).ID)
	before := s.do(t, call{path: "/v1/webhooks", key: s.admin})
	for _, c := range []call{
		{method: "POST", path: "/v1/webhooks", body: `{"url":"https://` + refusedHost + `/hook"}`},
		{method: "PATCH", path: path, body: `{"url":"https://` + refusedHost + `/hook"}`},
		{method: "PATCH", path: path, body: `{"description":"till","url":"https://` + refusedHost + `/hook"}`},
	} {
		c.key = s.admin
		got := s.do(t, c)
		got.want(t, http.StatusBadRequest, animalstore.ValidationFailed)
		got.wantMessage(t, "url must lead to an allowed address")
	}
	if after := s.do(t, call{path: "/v1/webhooks", key: s.admin}); string(after.body) != string(before.body) {
		t.Errorf("after refusals: got %s, want %s", after.body, before.body)
	}
}

// TestWebhookRotation: the new secret signs at once, and the old one too until its grace
// period ends, to the millisecond.
func TestWebhookRotation(t *testing.T) {
	s := start(t)
	for body, grace := range map[string]time.Duration{
		"":                         24 * time.Hour,
		`{}`:                       24 * time.Hour,
		`{"graceSeconds":60}`:      time.Minute,
		`{"graceSeconds":7776000}`: 90 * 24 * time.Hour,
		`{"graceSeconds":0}`:       0,
	} {
		t.Run(body, func(t *testing.T) {
			for _, after := range []time.Duration{0, grace - time.Millisecond, grace} {
				if after < 0 {
					continue
				}
				hook := s.make(t, "/v1/webhooks", `{"url":"https://example.com/hook"}`)
				path := fmt.Sprint("/v1/webhooks/", hook.ID)
				want := []string{s.make(t, path+"/rotate", body).Secret}
				if after < grace {
					want = append(want, hook.Secret)
				}
				s.clock.advance(after)
				if got := s.secretsOf(t, hook.ID); !slices.Equal(got, want) {
					t.Errorf("%v after the rotation: got %d secrets, want the new one and, before %v, the old one: %d", after, len(got), grace, len(want))
				}
				s.do(t, call{method: "DELETE", path: path, key: s.admin}).want(t, http.StatusNoContent, "")
			}
		})
	}
}
