package api_test

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/keys"

	"github.com/getkin/kin-openapi/openapi3"
)

// failures stores what was collected and returns a page of failures.
func (s *service) failures(t testing.TB, key, query string) []animalstore.Failure {
	t.Helper()
	if err := s.server.Save(t.Context()); err != nil {
		t.Fatal(err)
	}
	return read[[]animalstore.Failure](t, s.do(t, call{path: "/v1/failures" + query, key: key}), http.StatusOK)
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
		s.clock.Advance(time.Second)
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
		{call: call{path: "/v1/store/orders"}, before: fail("Orders", failWith(db.ErrOutcomeUnknown))},
		{call: call{path: "/v1/store/orders"}, before: fail("Orders", failWith(db.ErrFull))},
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
		{call: call{path: petPath(sold.ID)}, want: "410 endpoint_removed GET /v1/pets/{petId} " + petPath(sold.ID),
			before: func() { s.clock.Set(removal) }},
	}
}

// TestFailuresOfOthers: a key sees its own failures, with any permissions, and only
// admin sees those of others.
func TestFailuresOfOthers(t *testing.T) {
	s := start(t)
	writer, id := s.makeKey(t, keys.Mint(s.env), func(k *animalstore.NewKey) { k.Permissions = animalstore.Write })
	other, otherID := s.makeKey(t, keys.Mint(s.env))
	s.do(t, with(call{path: "/v1/pets", key: writer}, "X-Request-Id", "one")).want(t, 403, animalstore.InsufficientPermission)
	s.clock.Advance(time.Second)
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

// TestFailuresQuery: pages lead on with their filters.
func TestFailuresQuery(t *testing.T) {
	s := start(t)
	since := s.clock.Now().Format(time.RFC3339)
	var want []string
	for i := range 5 {
		s.clock.Advance(time.Second)
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

// TestFailuresKeepNoValues: no value of a request that fails is stored: not of the body, the
// query, the headers or a path that isn't known, whichever check refuses it.
func TestFailuresKeepNoValues(t *testing.T) {
	s := start(t).inProcess()
	const canary = "canary4711"
	exhausted := s.limitedKey(t, 1, 1_000)
	s.do(t, call{path: "/v1/pets", key: exhausted})
	for _, op := range operations {
		since := animalstore.At(s.clock.Now())
		c := op.call(t, s)
		c.key, c.bad = s.admin, true
		calls := withValues(c, inDocument(op.id), canary)
		for _, key := range []string{exhausted, noKey, canary} {
			refused := calls[0]
			refused.key = key
			calls = append(calls, refused)
		}
		for _, c := range calls {
			s.do(t, c)
			s.clock.Advance(time.Second) // of a key and code, one a second is stored
		}
		if err := s.server.Save(t.Context()); err != nil {
			t.Fatal(err)
		}
		stored, err := s.db.Failures(t.Context(), animalstore.FailureQuery{Since: since}, db.Page{Limit: 1000})
		if err != nil || len(stored) < 4 {
			t.Errorf("%s: got %d failures, %v, want more", op.id, len(stored), err)
		}
		for _, f := range stored {
			if text := asJSON(t, f); strings.Contains(strings.ToLower(text), canary) {
				t.Errorf("%s: a failure has the canary: %s", op.id, text)
			}
		}
	}
}

// withValues are requests for an operation that have a value in each place that it reads, and
// in places that it doesn't.
func withValues(c call, op *openapi3.Operation, value string) (calls []call) {
	add := func(change func(*call)) {
		changed := c
		change(&changed)
		calls = append(calls, changed)
	}
	path, _, _ := strings.Cut(c.path, "?")
	for _, name := range []string{"If-Match", "If-None-Match", "Idempotency-Key", "Content-Type", "Accept", "Last-Event-Id", "X-Forwarded-For", value} {
		add(func(c *call) { c.header = http.Header{name: {value + " "}} })
	}
	for _, p := range op.Parameters {
		if p.Value.In == openapi3.ParameterInQuery {
			add(func(c *call) { c.path = path + "?" + p.Value.Name + "=" + value })
		}
	}
	add(func(c *call) { c.path = path + "?" + value + "=%zz" })
	add(func(c *call) { c.path = path + "/" + value })
	add(func(c *call) { c.method = strings.ToUpper(value) })
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		if _, err := strconv.Atoi(segment); err == nil {
			add(func(c *call) { c.path = strings.Join(slices.Replace(slices.Clone(segments), i, i+1, value), "/") })
		}
	}
	if op.RequestBody == nil {
		return calls
	}
	bodies := []string{`"` + value + `"`, `{"` + value + `":1,"` + value + `":2}`, `{"` + value, `[{"` + value + `":1}]`, `{"pets":[{"name":"` + value + `","categoryId":"` + value + `"}]}`}
	if media := op.RequestBody.Value.Content.Get("application/json"); media != nil {
		for field := range media.Schema.Value.Properties {
			bodies = append(bodies, `{"`+field+`":"`+value+`"}`, `{"`+field+`":["`+value+`"]}`, `{"`+field+`":{"`+value+`":"`+value+`"}}`)
		}
	}
	for _, body := range bodies {
		add(func(c *call) { c.body = body })
	}
	return calls
}
