package api_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/keys"
)

// failures stores what was collected and returns a page of failures.
func (s *service) failures(t testing.TB, key, query string) []animalstore.Failure {
	t.Helper()
	if err := s.server.Save(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := s.do(t, call{path: "/v1/failures" + query, key: key})
	var all []animalstore.Failure
	if err := json.Unmarshal(got.body, &all); err != nil || got.status != http.StatusOK {
		t.Fatalf("got %v, want a page of failures (%v)", got, err)
	}
	return all
}

// keyID is the id of the key with this secret.
func (s *service) keyID(t testing.TB, secret string) int64 {
	t.Helper()
	key, _, err := s.db.DB.KeyByHash(t.Context(), keys.Hash(secret))
	if err != nil {
		t.Fatal(err)
	}
	return key.ID
}

// describe is a failure in one line.
func describe(f animalstore.Failure) string {
	route, path := "null", "null"
	if f.Route != nil {
		route, path = *f.Route, *f.Path
	}
	return fmt.Sprintf("%s %d %s %s %s %s", f.RequestID, f.Status, f.Code, f.Method, route, path)
}

func wantFailures(t testing.TB, got []animalstore.Failure, want ...string) {
	t.Helper()
	lines := []string{}
	for _, f := range got {
		lines = append(lines, describe(f))
	}
	if !slices.Equal(lines, want) {
		t.Errorf("got failures\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}

// TestFailedRequests: requests with a valid key that get an error are kept, whichever check
// or handler refuses them, and whichever code they get.
func TestFailedRequests(t *testing.T) {
	s := start(t, func(with *setup) { with.photosLimit = 1 })
	kept := map[animalstore.Code]bool{} // by the codes that occurred
	for i, test := range failedRequests(t, s) {
		if test.before != nil {
			test.before()
		}
		id := fmt.Sprint("request-", i)
		s.clock.advance(time.Second)
		c := with(test.call, "X-Request-Id", id)
		c.bad = true
		got := s.do(t, c)
		found := s.failures(t, s.admin, "?requestId="+id)
		if test.want == "" {
			wantFailures(t, found)
			kept[got.code()] = kept[got.code()]
			continue
		}
		wantFailures(t, found, id+" "+test.want)
		if len(found) != 1 {
			continue
		}
		kept[found[0].Code] = true
		if key := s.keyID(t, cmp.Or(c.key, s.owner)); found[0].KeyID != key || found[0].Status != got.status || !found[0].Time.Equal(s.clock.Now()) {
			t.Errorf("got %+v, want key %d and what was sent: %v", found[0], key, got)
		}
		if c.method != "HEAD" {
			got.want(t, found[0].Status, found[0].Code)
			got.wantMessage(t, found[0].Message)
		}
	}
	// Refusals of the credential checks, and of a database that is gone.
	never := []animalstore.Code{animalstore.MissingAPIKey, animalstore.InvalidAPIKey, animalstore.KeySuspended, animalstore.AddressNotAllowed, animalstore.Unavailable}
	for _, code := range animalstore.Codes {
		if got, ok := kept[code]; !ok || got == slices.Contains(never, code) {
			t.Errorf("%s: tested %t, kept %t, want a row in failedRequests and kept %t", code, ok, got, !slices.Contains(never, code))
		}
	}
}

type failedRequest struct {
	call   call
	want   string // as [describe] writes it, without the id; "" if it isn't kept
	before func()
}

// failedRequests has at least one request for each code.
func failedRequests(t *testing.T, s *service) []failedRequest {
	t.Helper()
	limited := func(perMinute, perDay int64) (secret string, id int64) {
		return s.makeKey(t, keys.Mint(s.env), func(k *animalstore.NewKey) { k.Limits = animalstore.Limits{PerMinute: perMinute, PerDay: perDay} })
	}
	minute, _ := limited(1, 1_000)
	day, _ := limited(1_000, 1)
	banned, bannedID := limited(1_000, 1_000)
	now := s.clock.Now()
	s.remember(t, bannedID, db.LimitState{BannedAt: now.UnixMilli(), BannedUntil: now.Add(time.Hour).UnixMilli(), BanLevel: 1})
	s.do(t, call{path: "/v1/pets", key: minute})
	s.do(t, call{path: "/v1/pets", key: day})
	suspended, id := s.makeKey(t, keys.Mint(s.env))
	s.suspend(t, id, true)
	elsewhere, _ := s.makeKey(t, keys.Mint(s.env), func(k *animalstore.NewKey) { k.Networks = animalstore.Networks("192.0.2.0/24") })
	secret := keys.Mint(s.env)

	sold, full := s.addOne(t, animalstore.PetSold), s.addOne(t, animalstore.PetAvailable)
	for range animalstore.MaxPhotos {
		s.addPhoto(t, full.ID)
	}
	webhook := s.addWebhook(t)
	for n := 1; n < animalstore.MaxWebhooks; n++ {
		if _, err := s.db.DB.CreateWebhook(t.Context(), animalstore.NewWebhook{URL: "https://example.com/hook"}, "whsec_b25l", animalstore.At(now)); err != nil {
			t.Fatal(err)
		}
	}
	s.do(t, post("/v1/pets", rex, "Idempotency-Key", "once"))
	fail := func(method string, do fault) func() { return func() { s.db.arm(method, do) } }
	stream := with(call{path: "/v1/events?after=latest"}, "Accept", "text/event-stream")
	admin := func(c call) call { c.key = s.admin; return c }
	adminPath := fmt.Sprint("/v1/keys/", s.keyID(t, s.admin))
	deliveryPath := fmt.Sprintf("/v1/webhooks/%d/deliveries/9", webhook.ID)
	photosOf := func(pet animalstore.Pet) string { return fmt.Sprintf("/v1/pets/%d/photos", pet.ID) }
	const uploads = " POST /v1/pets/{petId}/photos "
	return []failedRequest{
		{call: call{path: "/v1/pets"}},
		{call: call{path: "/v1/keys/1/usage", key: minute}, want: "429 rate_limit_exceeded GET /v1/keys/{keyId}/usage /v1/keys/1/usage"},
		{call: call{path: "/v1/pets", key: day}, want: "429 daily_quota_exceeded GET /v1/pets /v1/pets"},
		{call: call{path: "/v1/nothing", key: banned}, want: "429 key_banned GET null null"},
		{call: call{path: "/v1/nothing/" + secret}, want: "404 route_not_found GET null null"},
		{call: call{path: "/v1/pets/7%2f8"}, want: "404 route_not_found GET null null"},
		{call: call{path: "/v1/pets?limit=0"}, want: "400 invalid_parameter GET /v1/pets /v1/pets"},
		{call: call{path: "/v1/pets?cursor=x"}, want: "400 invalid_cursor GET /v1/pets /v1/pets"},
		{call: call{method: "POST", path: "/v1/pets", body: "{"}, want: "400 malformed_json POST /v1/pets /v1/pets"},
		{call: call{method: "POST", path: "/v1/pets", body: "{}"}, want: "400 validation_failed POST /v1/pets /v1/pets"},
		{call: upload(sold.ID, "image/jpeg", "x"), want: "400 invalid_image" + uploads + photosOf(sold)},
		{call: call{method: "POST", path: "/v1/pets", body: bodyOf(1<<20 + 1)}, want: "413 payload_too_large POST /v1/pets /v1/pets"},
		{call: with(post("/v1/pets", rex), "Content-Type", "text/plain"), want: "415 unsupported_media_type POST /v1/pets /v1/pets"},
		{call: call{method: "DELETE", path: "/v1/pets"}, want: "405 method_not_allowed DELETE /v1/pets /v1/pets"},
		{call: call{method: "BREW", path: "/v1/pets/9"}, want: "405 method_not_allowed other /v1/pets/{petId} /v1/pets/9"},
		{call: call{path: "/v1/pets/4711"}, want: "404 pet_not_found GET /v1/pets/{petId} /v1/pets/4711"},
		{call: call{method: "HEAD", path: "/v1/pets/4711"}, want: "404 pet_not_found HEAD /v1/pets/{petId} /v1/pets/4711"},
		{call: call{path: "/v1/pets/" + secret}, want: "404 pet_not_found GET /v1/pets/{petId} /v1/pets/{petId}"},
		{call: call{path: "/v1/store/orders/1"}, want: "404 order_not_found GET /v1/store/orders/{orderId} /v1/store/orders/1"},
		{call: call{path: "/v1/categories/-5"}, want: "404 category_not_found GET /v1/categories/{categoryId} /v1/categories/-5"},
		{call: call{path: "/v1/photos/4711"}, want: "404 photo_not_found GET /v1/photos/{photoId} /v1/photos/4711"},
		{call: admin(call{path: "/v1/keys/4711"}), want: "404 key_not_found GET /v1/keys/{keyId} /v1/keys/4711"},
		{call: admin(call{path: "/v1/webhooks/4711/deliveries/2"}), want: "404 webhook_not_found GET /v1/webhooks/{webhookId}/deliveries/{deliveryId} /v1/webhooks/4711/deliveries/2"},
		{call: admin(call{path: deliveryPath}), want: "404 delivery_not_found GET /v1/webhooks/{webhookId}/deliveries/{deliveryId} " + deliveryPath},
		{call: call{path: "/v1/keys"}, want: "403 insufficient_permission GET /v1/keys /v1/keys"},
		{call: post("/v1/pets", `{"name":"Max","categoryId":7}`, "Idempotency-Key", "once"), want: "422 idempotency_key_reused POST /v1/pets /v1/pets"},
		{call: patch(petPath(sold.ID), `{"status":"available"}`), want: "409 invalid_transition PATCH /v1/pets/{petId} " + petPath(sold.ID)},
		{call: post("/v1/store/orders", fmt.Sprintf(`{"petId":%d}`, sold.ID)), want: "409 pet_not_available POST /v1/store/orders /v1/store/orders"},
		{call: admin(remove(adminPath)), want: "409 last_admin_key DELETE /v1/keys/{keyId} " + adminPath},
		{call: admin(patch(adminPath, `{"networks":["192.0.2.0/24"]}`)), want: "409 would_lock_out PATCH /v1/keys/{keyId} " + adminPath},
		{call: admin(post("/v1/webhooks", `{"url":"https://example.com/hook"}`)), want: "409 too_many_webhooks POST /v1/webhooks /v1/webhooks"},
		{call: upload(full.ID, "image/jpeg", smallJPEG), want: "409 too_many_photos" + uploads + photosOf(full)},
		{call: upload(sold.ID, "image/jpeg", smallJPEG), want: "503 storage_full" + uploads + photosOf(sold)},
		{call: with(call{path: petPath(sold.ID)}, "If-Match", `"x"`), want: "412 precondition_failed GET /v1/pets/{petId} " + petPath(sold.ID)},
		{call: call{path: "/v1/events?after=4711"}, want: "410 events_expired GET /v1/events /v1/events"},
		{call: call{path: "/v1/store/orders"}, want: "500 internal_error GET /v1/store/orders /v1/store/orders", before: fail("Orders", func(context.Context) error { panic("broken") })},
		{call: call{path: "/v1/store/orders"}, want: "503 overloaded GET /v1/store/orders /v1/store/orders", before: fail("Orders", failWith(context.DeadlineExceeded))},
		{call: call{path: "/v1/store/orders"}, before: fail("Orders", failWith(db.ErrUnavailable))},
		{call: with(call{path: "/v1/pets", key: noKey}, "X-Canary", "x")},
		{call: call{path: "/v1/pets", key: secret}},
		{call: call{path: "/v1/pets", key: suspended}},
		{call: call{path: "/v1/pets", key: elsewhere}},
		{call: call{path: "/nothing"}},
		{call: stream, want: "429 too_many_streams GET /v1/events /v1/events", before: func() {
			for range 10 {
				s.openStream(t, call{path: "/v1/events?after=latest"})
			}
		}},
		{call: stream, want: "503 shutting_down GET /v1/events /v1/events", before: s.handler.Drain},
		{call: call{path: petPath(sold.ID)}, want: "410 endpoint_removed GET /v1/pets/{petId} " + petPath(sold.ID), before: func() { s.clock.set(removal) }},
	}
}

// TestFailuresOfOthers: a key sees its own failures, whatever its permissions, and only
// admin sees those of others.
func TestFailuresOfOthers(t *testing.T) {
	s := start(t)
	writer, id := s.makeKey(t, keys.Mint(s.env), func(k *animalstore.NewKey) { k.Permissions = animalstore.Write })
	other, otherID := s.makeKey(t, keys.Mint(s.env))
	s.do(t, with(call{path: "/v1/pets", key: writer}, "X-Request-Id", "one")).want(t, 403, animalstore.InsufficientPermission)
	s.clock.advance(time.Second)
	s.do(t, with(call{path: "/v1/pets?cursor=x", key: other}, "X-Request-Id", "two")).want(t, 400, animalstore.InvalidCursor)
	const one, two = "one 403 insufficient_permission GET /v1/pets /v1/pets", "two 400 invalid_cursor GET /v1/pets /v1/pets"
	wantFailures(t, s.failures(t, writer, ""), one)
	wantFailures(t, s.failures(t, writer, fmt.Sprint("?keyId=", id)), one)
	wantFailures(t, s.failures(t, writer, "?requestId=two"))
	wantFailures(t, s.failures(t, other, ""), two)
	wantFailures(t, s.failures(t, s.admin, ""), two, one)
	wantFailures(t, s.failures(t, s.admin, fmt.Sprint("?keyId=", otherID)), two)
	wantFailures(t, s.failures(t, s.admin, "?code=insufficient_permission"), one)
	wantFailures(t, s.failures(t, s.admin, "?since="+s.clock.Now().Format(time.RFC3339)), two)
	for _, f := range s.failures(t, s.admin, "") {
		if want := map[string]int64{"one": id, "two": otherID}[f.RequestID]; f.KeyID != want {
			t.Errorf("%s: got key %d, want %d", f.RequestID, f.KeyID, want)
		}
	}
	s.do(t, call{path: fmt.Sprint("/v1/failures?keyId=", otherID), key: writer}).want(t, 403, animalstore.InsufficientPermission)
}

// TestFailuresQuery: bad filters are refused, and pages lead on with their filters.
func TestFailuresQuery(t *testing.T) {
	s := start(t)
	for _, query := range []string{"keyId=0", "keyId=x", "code=unknown", "code=", "requestId=", "requestId=a+b", "since=yesterday", "since=", "since=0001-01-01T00:00:00Z", "since=2026-11-15", "limit=0", "code=a&code=b"} {
		s.do(t, call{path: "/v1/failures?" + query, key: s.admin, bad: true}).want(t, 400, animalstore.InvalidParameter)
	}
	s.do(t, call{path: "/v1/failures?cursor=x", bad: true}).want(t, 400, animalstore.InvalidCursor)
	since := s.clock.Now().Format(time.RFC3339)
	var want []string
	for i := range 5 {
		s.clock.advance(time.Second)
		s.do(t, with(call{path: "/v1/pets/9"}, "X-Request-Id", fmt.Sprint("r", i))).want(t, 404, animalstore.PetNotFound)
		want = append(want, fmt.Sprintf("r%d 404 pet_not_found GET /v1/pets/{petId} /v1/pets/9", i))
	}
	slices.Reverse(want)
	query := "?limit=2&code=pet_not_found&since=" + since
	var got []animalstore.Failure
	for range 3 {
		got = append(got, s.failures(t, "", query)...)
		_, next, _ := strings.Cut(s.do(t, call{path: "/v1/failures" + query}).header.Get("Link"), `rel="first", </v1/failures`)
		query, _, _ = strings.Cut(next, ">")
	}
	wantFailures(t, got, want...)
	if query != "" {
		t.Errorf("the last page leads to %q, want no next page", query)
	}
}

// TestFailuresKeepNoValues: no value of a request appears in a failure, nor in the database:
// not of the body, the query, the headers or a path that isn't known.
func TestFailuresKeepNoValues(t *testing.T) {
	s := start(t)
	const canary = "canary4711"
	headers := http.Header{}
	for _, name := range []string{"If-Match", "If-None-Match", "Idempotency-Key", "Content-Type", "Accept", "User-Agent", "X-Canary", "Cookie", "Last-Event-Id", "Traceparent", "X-Forwarded-For"} {
		headers[name] = []string{canary}
	}
	queries := []string{"limit", "cursor", "status", "categoryId", "id", "name", "petId", "hours", "after", "before", "type", "subject", "wait", "state", "keyId", "code", "requestId", "since", canary}
	bodies := []string{
		`"` + canary + `"`, `{"` + canary + `":1,"` + canary + `":2}`, `{"` + canary, `[{"` + canary + `":1}]`,
		`{"pets":[{"name":"` + canary + `","categoryId":"` + canary + `"}]}`,
	}
	for _, field := range []string{"name", "categoryId", "status", "petId", "reference", "note", "plan", "permissions", "perMinute", "expiresAt", "limits", "networks", "suspended", "graceSeconds", "url", "types", "description", "state", "type", "since", "pets"} {
		bodies = append(bodies, `{"`+field+`":"`+canary+`"}`, `{"`+field+`":["`+canary+`"]}`, `{"`+field+`":{"`+canary+`":"`+canary+`"}}`,
			`{"name":"x","categoryId":1,"url":"https://`+canary+`.example/`+canary+`","types":["`+canary+`"],"`+field+`":"`+canary+`"}`)
	}
	refused := 0
	for _, op := range operations {
		base := op.call(t, s)
		base.key, base.bad = s.admin, true
		send := func(change func(*call)) {
			c := base
			change(&c)
			if got, err := s.inProcess().send(t.Context(), c); err != nil {
				t.Fatal(err)
			} else if got.status >= 400 {
				refused++
			}
			s.clock.advance(time.Second)
		}
		path, _, _ := strings.Cut(base.path, "?")
		for name, values := range headers {
			send(func(c *call) { c.header = http.Header{name: values} })
		}
		for _, name := range queries {
			send(func(c *call) { c.path = path + "?" + name + "=" + canary })
		}
		send(func(c *call) { c.path = path + "?" + canary + "=%zz" })
		send(func(c *call) { c.path = path + "/" + canary })
		for i, segment := range strings.Split(path, "/") {
			if _, err := fmt.Sscan(segment, new(int)); err == nil {
				segments := strings.Split(path, "/")
				segments[i] = canary
				send(func(c *call) { c.path = strings.Join(segments, "/") })
			}
		}
		send(func(c *call) { c.method = strings.ToUpper(canary) })
		if base.body == "" {
			continue
		}
		for _, body := range bodies {
			send(func(c *call) { c.body = body })
		}
	}
	if err := s.server.Save(t.Context()); err != nil {
		t.Fatal(err)
	}
	if refused < 500 {
		t.Errorf("only %d requests were refused", refused)
	}
	stored := 0
	for query := ""; ; stored++ {
		got := s.do(t, call{path: "/v1/failures?limit=100" + query, key: s.admin})
		if strings.Contains(strings.ToLower(string(got.body)), canary) {
			t.Fatalf("a failure has the canary: %s", got.body)
		}
		_, next, ok := strings.Cut(got.header.Get("Link"), "</v1/failures?cursor=")
		if !ok {
			break
		}
		cursor, _, _ := strings.Cut(next, "&")
		query = "&cursor=" + cursor
	}
	if stored < 5 {
		t.Errorf("got %d pages of failures, want more", stored)
	}
}

// TestFailuresFile: nor is a value of a failed request anywhere in the database's files.
func TestFailuresFile(t *testing.T) {
	s := start(t)
	const canary = "canary4711"
	exhausted := s.limitedKey(t, 1, 1_000)
	s.do(t, call{path: "/v1/pets", key: exhausted})
	for _, op := range operations {
		for _, key := range []string{s.admin, exhausted, noKey, canary} {
			c := with(op.call(t, s), "If-Match", canary, "Idempotency-Key", canary+" ", "X-Canary", canary)
			path, _, _ := strings.Cut(c.path, "?")
			c.path, c.key, c.bad = path+"?limit="+canary, key, true
			if c.body != "" {
				c.body = `{"` + canary
			}
			s.do(t, c)
			c.path, c.method = path+"/"+canary, "GET"
			s.do(t, c)
			s.clock.advance(time.Second)
		}
	}
	if len(s.failures(t, s.admin, "?limit=100")) < 100 {
		t.Error("too few failures are stored")
	}
	files, err := filepath.Glob(strings.TrimPrefix(s.database, "sqlite:") + "*")
	if err != nil || len(files) == 0 {
		t.Fatalf("got files %q, %v", files, err)
	}
	seen := 0
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		seen += bytes.Count(content, []byte("/v1/webhooks/{webhookId}/deliveries/retry"))
		if i := bytes.Index(content, []byte(canary)); i >= 0 {
			t.Errorf("%s has the canary: %q", filepath.Base(file), content[max(0, i-100):i+20])
		}
	}
	if seen == 0 {
		t.Error("the files have no failures")
	}
}
