package api_test

import (
	"bytes"
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
	"animalstore/internal/testenv"
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
// or handler refuses them.
func TestFailedRequests(t *testing.T) {
	s := start(t)
	exhausted := s.limitedKey(t, 1, 1_000)
	s.do(t, call{path: "/v1/pets", key: exhausted})
	pet := fmt.Sprint("/v1/pets/", s.add(t, animalstore.NewPet{Name: "Rex"})[0].ID)
	s.db.arm("Orders", func(context.Context) error { panic("broken") })
	suspended, id := s.makeKey(t, keys.Mint(s.env))
	s.suspend(t, id, true)
	elsewhere, _ := s.makeKey(t, keys.Mint(s.env), func(k *animalstore.NewKey) { k.Networks = animalstore.Networks("192.0.2.0/24") })
	secret := keys.Mint(s.env)
	for i, test := range []struct {
		call call
		want string
	}{
		{call{path: "/v1/pets"}, ""},
		{call{path: "/v1/nothing/" + secret}, "404 route_not_found GET null null"},
		{call{path: "/v1/pets/7%2f8"}, "404 route_not_found GET null null"},
		{call{path: "/v1/pets?limit=0"}, "400 invalid_parameter GET /v1/pets /v1/pets"},
		{call{path: "/v1/pets?cursor=x"}, "400 invalid_cursor GET /v1/pets /v1/pets"},
		{call{method: "POST", path: "/v1/pets", body: "{"}, "400 malformed_json POST /v1/pets /v1/pets"},
		{call{method: "POST", path: "/v1/pets", body: "{}"}, "400 validation_failed POST /v1/pets /v1/pets"},
		{call{method: "POST", path: "/v1/pets", body: bodyOf(1<<20 + 1)}, "413 payload_too_large POST /v1/pets /v1/pets"},
		{with(post("/v1/pets", rex), "Content-Type", "text/plain"), "415 unsupported_media_type POST /v1/pets /v1/pets"},
		{call{method: "DELETE", path: "/v1/pets"}, "405 method_not_allowed DELETE /v1/pets /v1/pets"},
		{call{method: "BREW", path: "/v1/pets/9"}, "405 method_not_allowed other /v1/pets/{petId} /v1/pets/9"},
		{call{path: "/v1/pets/4711"}, "404 pet_not_found GET /v1/pets/{petId} /v1/pets/4711"},
		{call{method: "HEAD", path: "/v1/pets/4711"}, "404 pet_not_found HEAD /v1/pets/{petId} /v1/pets/4711"},
		{call{path: "/v1/pets/" + secret}, "404 pet_not_found GET /v1/pets/{petId} /v1/pets/{petId}"},
		{call{path: "/v1/store/orders/1"}, "404 order_not_found GET /v1/store/orders/{orderId} /v1/store/orders/1"},
		{call{path: "/v1/categories/-5"}, "404 category_not_found GET /v1/categories/{categoryId} /v1/categories/-5"},
		{call{path: "/v1/keys"}, "403 insufficient_permission GET /v1/keys /v1/keys"},
		{call{path: "/v1/keys/1/usage", key: exhausted}, "429 rate_limit_exceeded GET /v1/keys/{keyId}/usage /v1/keys/1/usage"},
		{with(call{path: pet}, "If-Match", `"x"`), "412 precondition_failed GET /v1/pets/{petId} " + pet},
		{call{path: "/v1/webhooks/1/deliveries/2", key: s.admin}, "404 webhook_not_found GET /v1/webhooks/{webhookId}/deliveries/{deliveryId} /v1/webhooks/1/deliveries/2"},
		{call{path: "/v1/store/orders"}, "500 internal_error GET /v1/store/orders /v1/store/orders"},
		{with(call{path: "/v1/pets", key: noKey}, "X-Canary", "x"), ""},
		{call{path: "/v1/pets", key: secret}, ""},
		{call{path: "/v1/pets", key: suspended}, ""},
		{call{path: "/v1/pets", key: elsewhere}, ""},
		{call{path: "/nothing"}, ""},
	} {
		id := fmt.Sprint("request-", i)
		s.clock.advance(time.Second)
		c := with(test.call, "X-Request-Id", id)
		c.bad = true
		got := s.do(t, c)
		var want []string
		if test.want != "" {
			want = []string{id + " " + test.want}
		}
		found := s.failures(t, s.admin, "?requestId="+id)
		wantFailures(t, found, want...)
		if len(found) == 1 && c.method != "HEAD" {
			got.wantMessage(t, found[0].Message)
			if found[0].Status != got.status || found[0].Code != got.code() || !found[0].Time.Equal(s.clock.Now()) {
				t.Errorf("got %+v, want what was sent: %v", found[0], got)
			}
		}
	}
}

// TestFailuresOfADatabase: what failed because the database is gone or full isn't kept, and
// a database that can't store failures only loses them.
func TestFailuresOfADatabase(t *testing.T) {
	s := start(t)
	for i, fault := range internalFaults {
		s.clock.advance(time.Second)
		s.db.arm("Pets", fault.fault)
		id := fmt.Sprint("fault-", i)
		s.do(t, with(call{path: fmt.Sprint("/v1/pets?limit=", i+1)}, "X-Request-Id", id)).want(t, fault.want, fault.code)
		kept := fault.code == animalstore.InternalError || fault.code == animalstore.Overloaded
		if got := s.failures(t, "", "?requestId="+id); (len(got) == 1) != kept {
			t.Errorf("%s: got %+v, kept should be %t", fault.name, got, kept)
		}
	}
	s.db.arm("Pets", nil)
	lost := s.handler.Stats().LostFailures
	s.db.arm("AddFailures", failWith(db.ErrFull))
	s.do(t, call{path: "/v1/pets?cursor=x"}).want(t, 400, animalstore.InvalidCursor)
	if err := s.handler.SaveFailures(t.Context()); err == nil {
		t.Error("SaveFailures: got nil, want the error of the database")
	}
	s.db.arm("AddFailures", nil)
	s.clock.advance(time.Second)
	s.do(t, with(call{path: "/v1/pets?cursor=x"}, "X-Request-Id", "afterwards")).want(t, 400, animalstore.InvalidCursor)
	wantFailures(t, s.failures(t, "", "?code=invalid_cursor"), "afterwards 400 invalid_cursor GET /v1/pets /v1/pets")
	if n := s.handler.Stats().LostFailures - lost; n != 1 {
		t.Errorf("got %d failures lost, want 1", n)
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

// TestFailureFlood: of the requests of a key that are refused in a loop, one a second is
// kept, and everything of other keys.
func TestFailureFlood(t *testing.T) {
	s := start(t).inProcess()
	flooder, other := s.limitedKey(t, 1, 1_000_000), s.owner
	requests := testenv.Count(2_000, 100_000)
	const seconds = 5
	for second := range seconds {
		for i := range requests / seconds {
			if _, err := s.send(t.Context(), call{path: "/v1/pets", key: flooder}); err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				s.do(t, with(call{path: "/v1/pets?cursor=x", key: other}, "X-Request-Id", fmt.Sprint("other-", second)))
				s.do(t, with(call{path: "/v1/pets/9", key: other}, "X-Request-Id", fmt.Sprint("absent-", second)))
			}
		}
		s.clock.advance(time.Second)
	}
	if got := s.failures(t, other, ""); len(got) != 2*seconds {
		t.Errorf("got %d failures of the other key, want all %d", len(got), 2*seconds)
	}
	perCode := map[animalstore.Code]int{}
	for _, f := range s.failures(t, s.admin, fmt.Sprintf("?limit=100&keyId=%d", s.keyID(t, flooder))) {
		perCode[f.Code]++
	}
	for code, n := range perCode {
		if n > seconds {
			t.Errorf("got %d failures with %s in %d seconds, want at most one a second", n, code, seconds)
		}
	}
	if len(perCode) == 0 {
		t.Error("got no failures of the key that floods")
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
