package api_test

import (
	"context"
	"encoding/base64"
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
		{"GET", path + "/deliveries/1", "", nil, 200, "", `"body":{"type":"webhook.ping","timestamp":`},
		{"GET", path + "/deliveries/77", "", nil, 404, "delivery_not_found", ""},
		{"GET", path + "/deliveries/1/", "", nil, 404, "route_not_found", ""},
		{"GET", path + "/deliveries/retry", "", nil, 405, "method_not_allowed", ""},
		{"POST", path + "/deliveries/1", "", nil, 405, "method_not_allowed", ""},
		{"POST", path + "/deliveries/retry", `{"state":"pending"}`, nil, 202, "", `{"deliveries":1}`},
		{"GET", path + "/deliveries/1/retry", "", nil, 405, "method_not_allowed", ""},
		{"GET", "/v1/webhooks/0", "", nil, 404, "webhook_not_found", ""},
		{"GET", "/v1/webhooks/77/deliveries", "", nil, 404, "webhook_not_found", ""},
		{"DELETE", path, "", nil, 204, "", ""},
		{"DELETE", path, "", nil, 404, "webhook_not_found", ""},
	} {
		got := s.do(t, call{method: test.method, path: test.path, body: test.body, header: test.header, key: key, bad: test.status == 400 || test.status == 404 || test.status == 405})
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
	if _, err := s.db.DB.PingWebhook(t.Context(), webhook.ID, animalstore.WebhookPing, now); err != nil {
		t.Fatal(err)
	}
	due, err := s.db.DB.ClaimDeliveries(t.Context(), now, animalstore.At(now.Add(time.Minute)))
	if err != nil || len(due) != 1 {
		t.Fatalf("claimed %d, %v, want the ping", len(due), err)
	}
	if _, _, err := s.db.DB.FinishDelivery(t.Context(), due[0].Result(animalstore.Attempt{Time: now, Status: new(204)}, 0, 0), now, animalstore.Time{}); err != nil {
		t.Fatal(err)
	}
	after := s.do(t, call{path: path, key: key})
	if string(before.body) == string(after.body) || before.header.Get("ETag") != after.header.Get("ETag") {
		t.Errorf("got %s with tag %s, want lastDeliveredAt and the tag %s", after.body, after.header.Get("ETag"), before.header.Get("ETag"))
	}
}

// webhookOperations are all operations of one webhook, after its path.
var webhookOperations = []struct{ method, rest, body string }{
	{"GET", "", ""},
	{"PATCH", "", `{"state":"paused"}`},
	{"DELETE", "", ""},
	{"POST", "/rotate", ""},
	{"POST", "/rotate", `{"graceSeconds":0}`},
	{"POST", "/ping", ""},
	{"POST", "/ping", `{"type":"pet.created"}`},
	{"GET", "/deliveries", ""},
	{"POST", "/deliveries/retry", `{"state":"failed"}`},
	{"GET", "/deliveries/1", ""},
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
	delivery, err := s.db.DB.PingWebhook(t.Context(), own.ID, animalstore.WebhookPing, now)
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
			path := fmt.Sprintf("/v1/webhooks/%d/deliveries/%s", test.webhook, test.id)
			s.do(t, call{method: "POST", path: path + "/retry", key: s.admin, bad: test.ignoreSchema}).want(t, test.status, test.code)
			if test.status == 202 {
				test.status = 200
			}
			s.do(t, call{path: path, key: s.admin, bad: test.ignoreSchema}).want(t, test.status, test.code)
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
		ping, err := s.db.DB.PingWebhook(t.Context(), webhooks[0], animalstore.WebhookPing, animalstore.At(s.clock.Now()))
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
	if _, err := s.db.DB.PingWebhook(t.Context(), id, animalstore.WebhookPing, now); err != nil {
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

// TestWebhookLeadsInside: an address that webhooks may not reach is refused when it is
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

func (f *faultyDB) CreateWebhook(ctx context.Context, w animalstore.NewWebhook, secret string, at animalstore.Time) (webhook animalstore.Webhook, err error) {
	if err = f.hit(ctx, "CreateWebhook"); err != nil {
		return
	}
	return f.DB.CreateWebhook(ctx, w, secret, at)
}

func (f *faultyDB) Webhook(ctx context.Context, id int64) (webhook animalstore.Webhook, err error) {
	if err = f.hit(ctx, "Webhook"); err != nil {
		return
	}
	return f.DB.Webhook(ctx, id)
}

func (f *faultyDB) Webhooks(ctx context.Context, q db.WebhookQuery) (webhooks []animalstore.Webhook, err error) {
	if err = f.hit(ctx, "Webhooks"); err != nil {
		return
	}
	return f.DB.Webhooks(ctx, q)
}

func (f *faultyDB) UpdateWebhook(ctx context.Context, id int64, change func(*animalstore.Webhook) error) (webhook animalstore.Webhook, err error) {
	if err = f.hit(ctx, "UpdateWebhook"); err != nil {
		return
	}
	return f.DB.UpdateWebhook(ctx, id, change)
}

func (f *faultyDB) DeleteWebhook(ctx context.Context, id int64, check func(*animalstore.Webhook) error) (err error) {
	if err = f.hit(ctx, "DeleteWebhook"); err != nil {
		return
	}
	return f.DB.DeleteWebhook(ctx, id, check)
}

func (f *faultyDB) RotateWebhook(ctx context.Context, id int64, secret string, until animalstore.Time, check func(*animalstore.Webhook) error) (webhook animalstore.Webhook, err error) {
	if err = f.hit(ctx, "RotateWebhook"); err != nil {
		return
	}
	return f.DB.RotateWebhook(ctx, id, secret, until, check)
}

func (f *faultyDB) PingWebhook(ctx context.Context, id int64, eventType animalstore.EventType, at animalstore.Time) (delivery animalstore.Delivery, err error) {
	if err = f.hit(ctx, "PingWebhook"); err != nil {
		return
	}
	return f.DB.PingWebhook(ctx, id, eventType, at)
}

func (f *faultyDB) Deliveries(ctx context.Context, q db.DeliveryQuery) (deliveries []animalstore.Delivery, err error) {
	if err = f.hit(ctx, "Deliveries"); err != nil {
		return
	}
	return f.DB.Deliveries(ctx, q)
}

func (f *faultyDB) Delivery(ctx context.Context, webhookID, id int64) (delivery animalstore.DeliveryWithBody, err error) {
	if err = f.hit(ctx, "Delivery"); err != nil {
		return
	}
	return f.DB.Delivery(ctx, webhookID, id)
}

func (f *faultyDB) RetryDeliveries(ctx context.Context, q db.RetryQuery, at animalstore.Time) (retried int, next int64, err error) {
	if err = f.hit(ctx, "RetryDeliveries"); err != nil {
		return
	}
	return f.DB.RetryDeliveries(ctx, q, at)
}

func (f *faultyDB) RetryDelivery(ctx context.Context, webhookID, id int64, at animalstore.Time) (delivery animalstore.Delivery, err error) {
	if err = f.hit(ctx, "RetryDelivery"); err != nil {
		return
	}
	return f.DB.RetryDelivery(ctx, webhookID, id, at)
}
