package api_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"animalstore"
)

// webhookOperations are all operations of one webhook, after its path.
var webhookOperations = []struct{ method, rest, body string }{
	{"GET", "", ""},
	{"PATCH", "", `{"state":"paused"}`},
	{"DELETE", "", ""},
	{"POST", "/rotate", ""},
	{"POST", "/rotate", `{"graceSeconds":0}`},
	{"POST", "/ping", ""},
	{"GET", "/deliveries", ""},
	{"POST", "/deliveries/1/retry", ""},
}

// TestWebhookNotFound: every operation of a webhook that isn't there says so, even if
// the request has a precondition.
func TestWebhookNotFound(t *testing.T) {
	s := start(t)
	removed := s.addWebhook(t)
	removedPath := fmt.Sprint("/v1/webhooks/", removed.ID)
	s.do(t, call{method: "DELETE", path: removedPath, key: s.admin}).want(t, http.StatusNoContent, "")
	paths := []string{removedPath}
	for _, id := range []string{"0", "-1", "01", "x", "1.0", "9223372036854775807", "9223372036854775808"} {
		paths = append(paths, "/v1/webhooks/"+id)
	}
	for _, op := range webhookOperations {
		for _, path := range paths {
			t.Run(op.method+" "+path+op.rest, func(t *testing.T) {
				c := call{method: op.method, path: path + op.rest, body: op.body, key: s.admin, bad: true}
				s.do(t, c).want(t, http.StatusNotFound, animalstore.WebhookNotFound)
				s.do(t, with(c, "If-Match", `"x"`)).want(t, http.StatusNotFound, animalstore.WebhookNotFound)
			})
		}
	}
}

// TestDeliveryNotFound: a delivery is found only under its own webhook.
func TestDeliveryNotFound(t *testing.T) {
	s := start(t)
	now := animalstore.At(s.clock.Now())
	own, other := s.addWebhook(t), s.addWebhook(t)
	delivery, err := s.db.DB.PingWebhook(t.Context(), own.ID, now)
	if err != nil {
		t.Fatal(err)
	}
	id := fmt.Sprint(delivery.ID)
	for _, test := range []struct {
		name         string
		webhook      int64
		id           string
		status       int
		code         animalstore.Code
		ignoreSchema bool
	}{
		{"its own webhook", own.ID, id, 202, "", false},
		{"another webhook", other.ID, id, 404, "delivery_not_found", false},
		{"a missing webhook", other.ID + 1, id, 404, "webhook_not_found", false},
		{"a missing delivery", own.ID, fmt.Sprint(delivery.ID + 1), 404, "delivery_not_found", false},
		{"zero", own.ID, "0", 404, "delivery_not_found", true},
		{"negative", own.ID, "-1", 404, "delivery_not_found", true},
		{"a leading zero", own.ID, "0" + id, 404, "delivery_not_found", true},
		{"text", own.ID, "x", 404, "delivery_not_found", true},
		{"too large", own.ID, "9223372036854775808", 404, "delivery_not_found", true},
		{"both missing", other.ID + 1, "x", 404, "webhook_not_found", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := fmt.Sprintf("/v1/webhooks/%d/deliveries/%s/retry", test.webhook, test.id)
			s.do(t, call{method: "POST", path: path, key: s.admin, bad: test.ignoreSchema}).want(t, test.status, test.code)
		})
	}
	got := s.do(t, call{path: fmt.Sprintf("/v1/webhooks/%d/deliveries", other.ID), key: s.admin})
	if strings.TrimSpace(string(got.body)) != "[]" {
		t.Errorf("got %v, want no deliveries of another webhook", got)
	}
}

// TestWebhookListQueries: a wrong query of a list names the parameter.
func TestWebhookListQueries(t *testing.T) {
	s := start(t)
	first, second := s.addWebhook(t), s.addWebhook(t)
	deliveries := fmt.Sprintf("/v1/webhooks/%d/deliveries", first.ID)
	cursor := func(text string) string { return "?cursor=" + base64.RawURLEncoding.EncodeToString([]byte(text)) }
	for _, test := range []struct {
		query string
		code  animalstore.Code
		part  string
	}{
		{"?limit=0", "invalid_parameter", "limit must be an integer from 1 to 100"},
		{"?limit=101", "invalid_parameter", "limit must be"},
		{"?limit=", "invalid_parameter", "limit must be"},
		{"?limit=1.0", "invalid_parameter", "limit must be"},
		{"?limit=1&limit=1", "invalid_parameter", "limit is given 2 times"},
		{"?limit=%zz", "invalid_parameter", "query"},
		{"?cursor=", "invalid_cursor", "cursor"},
		{"?cursor=x", "invalid_cursor", "cursor"},
		{cursor("/v1/pets|7|"), "invalid_cursor", "another list"},
		{cursor(fmt.Sprintf("/v1/webhooks/%d/deliveries|7|", second.ID)), "invalid_cursor", "another list"},
	} {
		for _, path := range []string{"/v1/webhooks", deliveries} {
			got := s.do(t, call{path: path + test.query, key: s.admin, bad: true})
			got.want(t, http.StatusBadRequest, test.code)
			got.wantMessage(t, test.part)
		}
	}
	for _, test := range []struct {
		path string
		code animalstore.Code
		part string
	}{
		{"/v1/webhooks" + cursor("/v1/webhooks|0|"), "invalid_cursor", "cursor"},
		{"/v1/webhooks" + cursor("/v1/webhooks|-1|"), "invalid_cursor", "cursor"},
		{deliveries + cursor(deliveries+"|0|"), "invalid_cursor", "cursor"},
		{deliveries + cursor(deliveries+"|7|state=lost"), "invalid_cursor", "cursor"},
		{deliveries + cursor(deliveries+"|7|state=failed") + "&state=pending", "invalid_cursor", "another state"},
		{deliveries + "?state=", "invalid_parameter", "state must be one of"},
		{deliveries + "?state=Failed", "invalid_parameter", "state must be one of"},
		{deliveries + "?state=failed&state=failed", "invalid_parameter", "state is given 2 times"},
	} {
		got := s.do(t, call{path: test.path, key: s.admin, bad: true})
		got.want(t, http.StatusBadRequest, test.code)
		got.wantMessage(t, test.part)
	}
}

// TestWebhookPages walks through both lists one by one, newest first.
func TestWebhookPages(t *testing.T) {
	s := start(t)
	var webhooks, pings []int64
	for range 3 {
		webhooks = append(webhooks, s.addWebhook(t).ID)
	}
	for range 3 {
		ping, err := s.db.DB.PingWebhook(t.Context(), webhooks[0], animalstore.At(s.clock.Now()))
		if err != nil {
			t.Fatal(err)
		}
		pings = append(pings, ping.ID)
	}
	slices.Reverse(webhooks)
	slices.Reverse(pings)
	for path, want := range map[string][]int64{
		"/v1/webhooks?limit=1": webhooks,
		fmt.Sprintf("/v1/webhooks/%d/deliveries?limit=1&state=pending", webhooks[2]): pings,
		fmt.Sprintf("/v1/webhooks/%d/deliveries?limit=1&state=failed", webhooks[2]):  nil,
	} {
		var got []int64
		for next := path; next != "" && len(got) <= len(want); {
			page := s.do(t, call{path: next, key: s.admin})
			page.want(t, http.StatusOK, "")
			got = append(got, idsIn(t, page)...)
			link := linkGrammar.FindStringSubmatch(page.header.Get("Link"))
			if link == nil {
				t.Fatalf("%s: got Link %q", next, page.header.Get("Link"))
			}
			next = link[2]
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %d, want %d", path, got, want)
		}
	}
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

// secretsOf returns the secrets that sign what is sent to a webhook.
func (s *service) secretsOf(t *testing.T, id int64) []string {
	t.Helper()
	now := animalstore.At(s.clock.Now())
	if _, err := s.db.DB.PingWebhook(t.Context(), id, now); err != nil {
		t.Fatal(err)
	}
	due, err := s.db.DB.ClaimDeliveries(t.Context(), now, animalstore.At(now.Add(time.Minute)))
	if err != nil || len(due) != 1 || due[0].WebhookID != id {
		t.Fatalf("claimed %v, %v, want a ping of webhook %d", due, err, id)
	}
	return due[0].Secrets
}

// TestWebhookIfMatch: every change of a webhook is refused unless the tag is the
// current one, and then changes nothing.
func TestWebhookIfMatch(t *testing.T) {
	s := start(t)
	for _, change := range []struct {
		method, rest, body string
		ok                 int
	}{
		{"PATCH", "", `{"state":"paused"}`, 200},
		{"DELETE", "", "", 204},
		{"POST", "/rotate", `{"graceSeconds":60}`, 200},
		{"POST", "/rotate", "", 200},
	} {
		t.Run(change.method+change.rest, func(t *testing.T) {
			webhook := s.addWebhook(t)
			path := fmt.Sprint("/v1/webhooks/", webhook.ID)
			get := func() response { t.Helper(); return s.do(t, call{path: path, key: s.admin}) }
			send := func(tag string) response {
				t.Helper()
				return s.do(t, with(call{method: change.method, path: path + change.rest, body: change.body, key: s.admin}, "If-Match", tag))
			}
			stale := get().header.Get("ETag")
			s.do(t, call{method: "PATCH", path: path, body: `{"description":"till"}`, key: s.admin}).want(t, http.StatusOK, "")
			before := get()
			tag := before.header.Get("ETag")
			for _, other := range []string{stale, `"x"`, "W/" + tag, `"x", "y"`} {
				got := send(other)
				got.want(t, http.StatusPreconditionFailed, animalstore.PreconditionFailed)
				got.wantMessage(t, "If-Match")
			}
			if after := get(); string(after.body) != string(before.body) {
				t.Errorf("after refusals: got %s, want %s", after.body, before.body)
			}
			if got := s.secretsOf(t, webhook.ID); !slices.Equal(got, []string{"whsec_b25l"}) {
				t.Errorf("after refusals: got %d secrets, want the first one alone", len(got))
			}
			send(`"x", `+tag).want(t, change.ok, "")
			path = fmt.Sprint("/v1/webhooks/", s.addWebhook(t).ID)
			send("*").want(t, change.ok, "")
		})
	}
}

// TestWebhookPatchErrors: an invalid change is refused before its precondition, and
// before anybody looks for the webhook.
func TestWebhookPatchErrors(t *testing.T) {
	s := start(t)
	path := fmt.Sprint("/v1/webhooks/", s.addWebhook(t).ID)
	before := s.do(t, call{path: path, key: s.admin})
	long := strings.Repeat("x", animalstore.MaxWebhookURLLength)
	for _, test := range []struct {
		body string
		code animalstore.Code
		part string
	}{
		{``, "malformed_json", ""},
		{`[]`, "malformed_json", ""},
		{`{"state":"paused"}{}`, "malformed_json", ""},
		{`{"state":"paused","state":"paused"}`, "malformed_json", ""},
		{`{"url":null}`, "validation_failed", "url "},
		{`{"url":""}`, "validation_failed", "url "},
		{`{"url":7}`, "validation_failed", "url "},
		{`{"url":"ftp://example.com/"}`, "validation_failed", "url "},
		{`{"url":"https://example.com/#top"}`, "validation_failed", "url "},
		{`{"url":"https://me@example.com/"}`, "validation_failed", "url "},
		{`{"url":"https://example.com/` + long + `"}`, "validation_failed", "url "},
		{`{"types":null}`, "validation_failed", "types "},
		{`{"types":"pet.*"}`, "validation_failed", "types "},
		{`{"types":[]}`, "validation_failed", "types "},
		{`{"types":["pet.sold"]}`, "validation_failed", "types "},
		{`{"types":["pet.*",7]}`, "validation_failed", "types "},
		{`{"description":null}`, "validation_failed", "description "},
		{`{"description":"a\u0000b"}`, "validation_failed", "description "},
		{`{"description":"` + long + `"}`, "validation_failed", "description "},
		{`{"state":null}`, "validation_failed", "state "},
		{`{"state":"disabled"}`, "validation_failed", "state must be active or paused"},
		{`{"state":"Paused"}`, "validation_failed", "state must be active or paused"},
		{`{"state":"paused","description":7}`, "validation_failed", "description "},
	} {
		t.Run(fmt.Sprintf("%.40s", test.body), func(t *testing.T) {
			for _, to := range []string{path, "/v1/webhooks/4711"} {
				c := call{method: "PATCH", path: to, body: test.body, key: s.admin, bad: true}
				got := s.do(t, with(c, "If-Match", `"x"`))
				got.want(t, http.StatusBadRequest, test.code)
				got.wantMessage(t, test.part)
			}
		})
	}
	if after := s.do(t, call{path: path, key: s.admin}); string(after.body) != string(before.body) {
		t.Errorf("after refusals: got %s, want %s", after.body, before.body)
	}
}

// TestWebhookPermission: a key without admin can't even learn which webhooks exist.
func TestWebhookPermission(t *testing.T) {
	s := start(t)
	webhook := s.addWebhook(t)
	if _, err := s.db.DB.PingWebhook(t.Context(), webhook.ID, animalstore.At(s.clock.Now())); err != nil {
		t.Fatal(err)
	}
	calls := []call{{path: "/v1/webhooks"}, {path: "/v1/webhooks?limit=0"}, {method: "POST", path: "/v1/webhooks", body: `{"url":"https://example.com/hook"}`}}
	for _, path := range []string{fmt.Sprint("/v1/webhooks/", webhook.ID), "/v1/webhooks/4711", "/v1/webhooks/x"} {
		for _, op := range webhookOperations {
			calls = append(calls, call{method: op.method, path: path + op.rest, body: op.body})
		}
	}
	for _, p := range []animalstore.Permissions{animalstore.Read, animalstore.Write, readWrite} {
		key := s.key(t, p)
		for _, c := range calls {
			c.key, c.bad = key, true
			got := s.do(t, with(c, "If-Match", `"x"`))
			got.want(t, http.StatusForbidden, animalstore.InsufficientPermission)
			got.wantMessage(t, "permission admin", "yours has "+p.String())
		}
	}
	if got := idsIn(t, s.do(t, call{path: "/v1/webhooks", key: s.key(t, animalstore.Admin)})); !slices.Equal(got, []int64{webhook.ID}) {
		t.Errorf("after refusals: got webhooks %d, want %d alone", got, webhook.ID)
	}
}
