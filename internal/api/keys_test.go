package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/keys"
)

// keyBody is a key as a client sees it. Times that are null are empty.
type keyBody struct {
	ID                                          int64
	Name, Plan                                  string
	Limits                                      animalstore.Limits
	Permissions                                 []string
	Environment                                 string
	CreatedAt, ExpiresAt, LastUsedAt, RevokedAt string
	Secret                                      string
}

func (a response) key(t testing.TB) keyBody {
	t.Helper()
	var k keyBody
	if err := json.Unmarshal(a.body, &k); err != nil || a.status >= 300 {
		t.Fatalf("got %v, want a key (%v)", a, err)
	}
	return k
}

// asAdmin sends a request with the key that may do everything.
func (s *service) asAdmin(t testing.TB, method, path, body string) response {
	t.Helper()
	return s.do(t, call{method: method, path: path, body: body, key: s.admin})
}

func keyPath(id int64, rest ...string) string {
	return fmt.Sprint("/v1/keys/", id) + strings.Join(rest, "")
}

const noonText = "2026-11-15T12:00:00.000Z"

func TestCreateKey(t *testing.T) {
	s := start(t)
	tests := []struct {
		name, body string
		want       keyBody
	}{
		{"a name", `{"name":"shop"}`, keyBody{Plan: "free", Limits: animalstore.Limits{PerMinute: 60, PerDay: 1_000}, Permissions: []string{"read", "write"}}},
		{"unknown fields", `{"name":"shop","id":7,"secret":"x","environment":"staging","revokedAt":"x"}`, keyBody{Plan: "free", Limits: animalstore.Limits{PerMinute: 60, PerDay: 1_000}, Permissions: []string{"read", "write"}}},
		{"a plan", `{"name":"shop","plan":"pro"}`, keyBody{Plan: "pro", Limits: animalstore.Limits{PerMinute: 300, PerDay: 10_000}, Permissions: []string{"read", "write"}}},
		{"custom limits", `{"name":"shop","plan":"enterprise","limits":{"perMinute":5,"perDay":7e0}}`, keyBody{Plan: "enterprise", Limits: animalstore.Limits{PerMinute: 5, PerDay: 7}, Permissions: []string{"read", "write"}}},
		{"permissions in any order", `{"name":"shop","permissions":["admin","read"]}`, keyBody{Plan: "free", Limits: animalstore.Limits{PerMinute: 60, PerDay: 1_000}, Permissions: []string{"read", "admin"}}},
		{"a permission twice", `{"name":"shop","permissions":["read","read"]}`, keyBody{Plan: "free", Limits: animalstore.Limits{PerMinute: 60, PerDay: 1_000}, Permissions: []string{"read"}}},
		{"an expiry", `{"name":"shop","expiresAt":"2026-11-15T13:00:00.1239+01:00"}`, keyBody{Plan: "free", Limits: animalstore.Limits{PerMinute: 60, PerDay: 1_000}, Permissions: []string{"read", "write"}, ExpiresAt: "2026-11-15T12:00:00.123Z"}},
		{"no expiry", `{"name":"shop","expiresAt":null}`, keyBody{Plan: "free", Limits: animalstore.Limits{PerMinute: 60, PerDay: 1_000}, Permissions: []string{"read", "write"}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			response := s.asAdmin(t, "POST", "/v1/keys", test.body)
			response.want(t, http.StatusCreated, "")
			got := response.key(t)
			test.want.ID, test.want.Name, test.want.Secret = got.ID, "shop", got.Secret
			test.want.Environment, test.want.CreatedAt = "production", noonText
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %+v\nwant %+v", got, test.want)
			}
			if got := response.header.Get("Location"); got != keyPath(test.want.ID) {
				t.Errorf("Location: got %q, want %q", got, keyPath(test.want.ID))
			}
			if keys.Environment(got.Secret) != animalstore.Production {
				t.Errorf("got secret %.9s…, want a well-formed one", got.Secret)
			}
			response.wantSecretOnce(t, s, got)
			c := call{path: "/v1/pets", key: got.Secret}
			if test.want.Permissions[0] == "read" {
				s.do(t, c).want(t, http.StatusOK, "")
			}
		})
	}
}

// wantSecretOnce fails the test if nothing forbids to keep the response, or if the
// secret is shown anywhere else.
func (a response) wantSecretOnce(t *testing.T, s *service, k keyBody) {
	t.Helper()
	if got := a.header.Get("Cache-Control"); got != "no-store" {
		t.Errorf("Cache-Control: got %q, want no-store", got)
	}
	for _, path := range []string{keyPath(k.ID), "/v1/keys?limit=100", keyPath(k.ID, "/usage")} {
		got := s.asAdmin(t, "GET", path, "")
		got.want(t, http.StatusOK, "")
		if strings.Contains(string(got.body), "secret") || strings.Contains(string(got.body), k.Secret) {
			t.Errorf("%s: got %s, want no secret", path, got.body)
		}
	}
	for _, c := range []call{{method: "PATCH", path: keyPath(k.ID), body: "{}"}, {method: "POST", path: keyPath(k.ID, "/unban")}} {
		if got := s.asAdmin(t, c.method, c.path, c.body); strings.Contains(string(got.body), k.Secret[9:]) {
			t.Errorf("%s %s: got %s, want no secret", c.method, c.path, got.body)
		}
	}
	if lines := s.log.lines(k.Secret[9:20]); len(lines) > 0 {
		t.Errorf("got %q in the log, want no secret", lines)
	}
}

// badKeyFields are refused wherever a key is made or changed.
var badKeyFields = []struct{ name, fields, message string }{
	{"an empty name", `"name":""`, "name must not be empty"},
	{"a blank name", `"name":" \t"`, "name"},
	{"a name too long", `"name":"` + strings.Repeat("x", 101) + `"`, "at most 100"},
	{"a control character", `"name":"a\u0007"`, "control characters"},
	{"a number for a name", `"name":7`, "name must be a string"},
	{"null for a name", `"name":null`, "name must be a string"},
	{"an unknown plan", `"plan":"gold"`, "plan must be one of free, pro, business, enterprise"},
	{"a plan in capitals", `"plan":"Pro"`, "plan"},
	{"null for a plan", `"plan":null`, "plan"},
	{"limits on a fixed plan", `"plan":"pro","limits":{"perMinute":1,"perDay":1}`, "fixed limits"},
	{"limits on no plan", `"limits":{"perMinute":1,"perDay":1}`, "fixed limits"},
	{"enterprise without limits", `"plan":"enterprise"`, "limits"},
	{"half the limits", `"plan":"enterprise","limits":{"perMinute":1}`, "limits.perDay is required"},
	{"a limit of nothing", `"plan":"enterprise","limits":{"perMinute":0,"perDay":1}`, "positive"},
	{"a limit below nothing", `"plan":"enterprise","limits":{"perMinute":1,"perDay":-1}`, "positive"},
	{"a limit of a half", `"plan":"enterprise","limits":{"perMinute":1.5,"perDay":1}`, "limits.perMinute"},
	{"a limit in words", `"plan":"enterprise","limits":{"perMinute":"1","perDay":1}`, "limits.perMinute must be an integer"},
	{"a limit too large", `"plan":"enterprise","limits":{"perMinute":1,"perDay":9223372036854775808}`, "limits.perDay"},
	{"limits in an array", `"plan":"enterprise","limits":[1,1]`, "limits must be an object"},
	{"null for limits", `"limits":null`, "limits must be an object"},
	{"no permissions", `"permissions":[]`, "permissions"},
	{"an unknown permission", `"permissions":["read","own"]`, "permissions must be an array of read, write and admin"},
	{"two permissions in one", `"permissions":["read,write"]`, "permissions"},
	{"a blank around a permission", `"permissions":[" read"]`, "permissions"},
	{"a permission in capitals", `"permissions":["READ"]`, "permissions"},
	{"permissions in a string", `"permissions":"read"`, "permissions"},
	{"a number for a permission", `"permissions":[1]`, "permissions"},
	{"null for permissions", `"permissions":null`, "permissions"},
	{"an expiry that is now", `"expiresAt":"` + noonText + `"`, "expiresAt must be in the future"},
	{"an expiry in the past", `"expiresAt":"2020-01-01T00:00:00Z"`, "expiresAt must be in the future"},
	{"an expiry in the past of another zone", `"expiresAt":"2026-11-15T12:59:59+01:00"`, "in the future"},
	{"an expiry without a zone", `"expiresAt":"2027-01-01T00:00:00"`, "expiresAt must be a time such as"},
	{"a date for an expiry", `"expiresAt":"2027-01-01"`, "expiresAt"},
	{"a number for an expiry", `"expiresAt":1800000000`, "expiresAt"},
	{"an empty expiry", `"expiresAt":""`, "expiresAt"},
	{"an expiry after all we can write", `"expiresAt":"9999-12-31T23:59:59-01:00"`, "expiresAt"},
}

func TestCreateKeyRefused(t *testing.T) {
	s := start(t)
	tests := badKeyFields
	tests = append(tests, struct{ name, fields, message string }{"no name", `"plan":"free"`, "name is required"})
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			body := "{" + test.fields + "}"
			if !strings.Contains(body, `"name"`) && test.name != "no name" {
				body = `{"name":"shop",` + test.fields + "}"
			}
			got := s.do(t, call{method: "POST", path: "/v1/keys", body: body, key: s.admin, bad: true})
			got.want(t, http.StatusBadRequest, animalstore.ValidationFailed)
			got.wantMessage(t, test.message)
		})
	}
	for body, code := range map[string]animalstore.Code{"": "malformed_json", "{": "malformed_json", "[]": "malformed_json", `{"name":"a","name":"b"}`: "malformed_json", `{"Name":"a"}`: "validation_failed"} {
		s.do(t, call{method: "POST", path: "/v1/keys", body: body, key: s.admin, bad: true}).want(t, http.StatusBadRequest, code)
	}
	if got := s.listKeys(t); len(got) != 2 {
		t.Errorf("got %d keys, want the two there were", len(got))
	}
}

// listKeys are all keys, as the list shows them.
func (s *service) listKeys(t testing.TB) (all []keyBody) {
	t.Helper()
	for path := "/v1/keys?limit=100"; path != ""; {
		got := s.asAdmin(t, "GET", path, "")
		var page []keyBody
		if err := json.Unmarshal(got.body, &page); err != nil {
			t.Fatalf("got %v: %v", got, err)
		}
		all = append(all, page...)
		_, path = got.links(t)
	}
	return all
}

// TestListKeys: newest first, in pages, whatever state they are in.
func TestListKeys(t *testing.T) {
	s := start(t)
	for i := range 43 {
		_, id := s.makeKey(t, keys.Mint(s.env), func(k *animalstore.NewKey) {
			if i%5 == 0 {
				k.ExpiresAt = animalstore.At(s.clock.Now())
			}
		})
		if i%7 == 0 {
			if _, err := s.revoke(t, id); err != nil {
				t.Fatal(err)
			}
		}
	}
	for path, sizes := range map[string][]int{"/v1/keys": {20, 20, 5}, "/v1/keys?limit=45": {45}, "/v1/keys?limit=44": {44, 1}, "/v1/keys?limit=15&x=y": {15, 15, 15}} {
		got, last := []int{}, int64(46)
		for next := path; next != ""; {
			response := s.asAdmin(t, "GET", next, "")
			var page []keyBody
			if err := json.Unmarshal(response.body, &page); err != nil {
				t.Fatal(err)
			}
			for _, k := range page {
				if last--; k.ID != last {
					t.Fatalf("%s: got key %d, want %d", path, k.ID, last)
				}
				if (k.RevokedAt != "") != (k.ID >= 3 && (k.ID-3)%7 == 0) || (k.ExpiresAt != "") != (k.ID >= 3 && (k.ID-3)%5 == 0) {
					t.Errorf("key %d: got %+v, want its state told", k.ID, k)
				}
			}
			got = append(got, len(page))
			_, next = response.links(t)
		}
		if !reflect.DeepEqual(got, sizes) {
			t.Errorf("%s: got pages of %d, want %d", path, got, sizes)
		}
	}
	for query, code := range map[string]animalstore.Code{
		"limit=0": "invalid_parameter", "limit=101": "invalid_parameter", "limit=5&limit=5": "invalid_parameter", "limit=": "invalid_parameter", "%zz": "invalid_parameter",
		"cursor=x": "invalid_cursor", "cursor=": "invalid_cursor", "cursor=L3YxL3BldHN8Mnw": "invalid_cursor",
	} {
		s.do(t, call{path: "/v1/keys?" + query, key: s.admin, bad: true}).want(t, http.StatusBadRequest, code)
	}
}

// TestLastUse: a key shows when it was last used, also by a refused request.
func TestLastUse(t *testing.T) {
	s := start(t)
	secret, id := s.with(t, readWrite, func(k *animalstore.NewKey) { k.Limits = animalstore.Limits{PerMinute: 1, PerDay: 100} })
	lastUse := func() string {
		t.Helper()
		if err := s.server.Save(t.Context()); err != nil {
			t.Fatal(err)
		}
		return s.asAdmin(t, "GET", keyPath(id), "").key(t).LastUsedAt
	}
	if got := lastUse(); got != "" {
		t.Errorf("before: got %s, want null", got)
	}
	for i, want := range []string{noonText, "2026-11-15T12:00:00.500Z"} {
		if got := s.do(t, call{path: "/v1/pets", key: secret}).status; got != []int{200, 429}[i] {
			t.Errorf("request %d: got %d", i+1, got)
		}
		if got := lastUse(); got != want {
			t.Errorf("request %d: got %s, want %s", i+1, got, want)
		}
		s.clock.advance(500 * time.Millisecond)
	}
}

func TestUpdateKey(t *testing.T) {
	s := start(t)
	business := animalstore.Limits{PerMinute: 1_000, PerDay: 100_000}
	tests := []struct {
		name, body string
		change     func(*keyBody)
	}{
		{"nothing", `{}`, func(*keyBody) {}},
		{"unknown fields", `{"id":9,"secret":"x","createdAt":null}`, func(*keyBody) {}},
		{"a name", `{"name":"Büro 🦊"}`, func(k *keyBody) { k.Name = "Büro 🦊" }},
		{"a plan", `{"plan":"business"}`, func(k *keyBody) { k.Plan, k.Limits = "business", business }},
		{"the same plan", `{"plan":"free"}`, func(k *keyBody) {}},
		{"enterprise", `{"plan":"enterprise","limits":{"perMinute":5,"perDay":7}}`, func(k *keyBody) {
			k.Plan, k.Limits = "enterprise", animalstore.Limits{PerMinute: 5, PerDay: 7}
		}},
		{"permissions", `{"permissions":["admin"]}`, func(k *keyBody) { k.Permissions = []string{"admin"} }},
		{"an expiry", `{"expiresAt":"2027-01-31T12:00:00Z"}`, func(k *keyBody) { k.ExpiresAt = "2027-01-31T12:00:00.000Z" }},
		{"everything", `{"name":"n","plan":"business","permissions":["read"],"expiresAt":"2027-01-31T12:00:00Z"}`, func(k *keyBody) {
			k.Name, k.Plan, k.Limits, k.Permissions, k.ExpiresAt = "n", "business", business, []string{"read"}, "2027-01-31T12:00:00.000Z"
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			want := s.asAdmin(t, "POST", "/v1/keys", `{"name":"shop"}`).key(t)
			want.Secret = ""
			test.change(&want)
			for _, mediaType := range []string{"application/json", "application/merge-patch+json", "application/merge-patch+json; charset=utf-8"} {
				got := s.do(t, call{method: "PATCH", path: keyPath(want.ID), body: test.body, key: s.admin, header: http.Header{"Content-Type": {mediaType}}})
				got.want(t, http.StatusOK, "")
				if got := got.key(t); !reflect.DeepEqual(got, want) {
					t.Errorf("%s: got %+v\nwant %+v", mediaType, got, want)
				}
			}
			if got := s.asAdmin(t, "GET", keyPath(want.ID), "").key(t); !reflect.DeepEqual(got, want) {
				t.Errorf("read back: got %+v\nwant %+v", got, want)
			}
		})
	}
	t.Run("limits of a key that has its own", func(t *testing.T) {
		id := s.asAdmin(t, "POST", "/v1/keys", `{"name":"big","plan":"enterprise","limits":{"perMinute":5,"perDay":7}}`).key(t).ID
		for _, step := range []struct {
			body string
			want animalstore.Limits
		}{
			{`{"limits":{"perMinute":6,"perDay":8}}`, animalstore.Limits{PerMinute: 6, PerDay: 8}},
			{`{"plan":"enterprise"}`, animalstore.Limits{PerMinute: 6, PerDay: 8}},
			{`{"plan":"pro"}`, animalstore.Limits{PerMinute: 300, PerDay: 10_000}},
		} {
			if got := s.asAdmin(t, "PATCH", keyPath(id), step.body).key(t).Limits; got != step.want {
				t.Errorf("%s: got %v, want %v", step.body, got, step.want)
			}
		}
		s.asAdmin(t, "PATCH", keyPath(id), `{"plan":"enterprise"}`).want(t, http.StatusBadRequest, animalstore.ValidationFailed)
	})
	t.Run("an expiry taken back", func(t *testing.T) {
		id := s.asAdmin(t, "POST", "/v1/keys", `{"name":"brief","expiresAt":"2027-01-31T12:00:00Z"}`).key(t).ID
		if got := s.asAdmin(t, "PATCH", keyPath(id), `{"expiresAt":null}`).key(t).ExpiresAt; got != "" {
			t.Errorf("got expiry %s, want never", got)
		}
	})
}

func TestUpdateKeyRefused(t *testing.T) {
	s := start(t)
	before := s.asAdmin(t, "POST", "/v1/keys", `{"name":"shop"}`).key(t)
	before.Secret = ""
	for _, test := range badKeyFields {
		t.Run(test.name, func(t *testing.T) {
			// What comes before the mistake must not be stored either.
			body := `{"expiresAt":"2030-01-01T00:00:00Z",` + test.fields + "}"
			if strings.Contains(test.fields, "expiresAt") {
				body = `{"name":"other",` + test.fields + "}"
			}
			got := s.do(t, call{method: "PATCH", path: keyPath(before.ID), body: body, key: s.admin, bad: true})
			got.want(t, http.StatusBadRequest, animalstore.ValidationFailed)
			got.wantMessage(t, test.message)
		})
	}
	if got := s.asAdmin(t, "GET", keyPath(before.ID), "").key(t); !reflect.DeepEqual(got, before) {
		t.Errorf("got %+v, want it as it was, %+v", got, before)
	}
}

// TestKeyBodyBeforeKey: a body that is invalid for every key gets 400, whether or not the
// key exists or may be changed.
func TestKeyBodyBeforeKey(t *testing.T) {
	s := start(t)
	_, id := s.with(t, readWrite, nil)
	if _, err := s.revoke(t, id); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/v1/keys/99", "/v1/keys/abc", keyPath(id)} {
		for _, test := range badKeyFields {
			if test.name == "limits on no plan" || test.name == "enterprise without limits" {
				continue // which depends on the key
			}
			got := s.do(t, call{method: "PATCH", path: path, body: "{" + test.fields + "}", key: s.admin, bad: true})
			if got.status != http.StatusBadRequest {
				t.Errorf("PATCH %s with %s: got %v, want 400", path, test.name, got)
			}
		}
		for _, body := range []string{"{", `{"graceSeconds":-1}`} {
			got := s.do(t, call{method: "POST", path: path + "/rotate", body: body, key: s.admin, bad: true})
			if got.status != http.StatusBadRequest {
				t.Errorf("rotate %s with %s: got %v, want 400", path, body, got)
			}
		}
		if got := s.do(t, call{path: path + "/usage?hours=0", key: s.admin, bad: true}); got.status != http.StatusBadRequest {
			t.Errorf("usage of %s: got %v, want 400", path, got)
		}
	}
}

// TestChangesTakeEffect: what an admin changes counts within a second.
func TestChangesTakeEffect(t *testing.T) {
	tests := []struct {
		name, method, rest, body string
		call                     call
		before, after            int
	}{
		{"a permission taken away", "PATCH", "", `{"permissions":["write"]}`, call{path: "/v1/pets"}, 200, 403},
		{"a permission given", "PATCH", "", `{"permissions":["read","admin"]}`, call{path: "/v1/keys"}, 403, 200},
		{"revocation", "DELETE", "", "", call{path: "/v1/pets"}, 200, 401},
		{"an expiry that comes", "PATCH", "", `{"expiresAt":"2026-11-15T12:00:00.999Z"}`, call{path: "/v1/pets"}, 200, 401},
		{"a rotation without grace", "POST", "/rotate", `{"graceSeconds":0}`, call{path: "/v1/pets"}, 200, 401},
		{"a rotation with grace", "POST", "/rotate", `{"graceSeconds":2}`, call{path: "/v1/pets"}, 200, 200},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := start(t)
			secret, id := s.with(t, readWrite, nil)
			test.call.key = secret
			if got := s.do(t, test.call); got.status != test.before {
				t.Errorf("before: got %v, want %d", got, test.before)
			}
			if got := s.asAdmin(t, test.method, keyPath(id, test.rest), test.body); got.status >= 300 {
				t.Fatalf("got %v, want it done", got)
			}
			s.clock.advance(time.Second)
			if got := s.do(t, test.call); got.status != test.after {
				t.Errorf("a second later: got %v, want %d", got, test.after)
			}
		})
	}
}

// TestRevokedKey: it stays in the list as it was, and nothing more is done to it.
func TestRevokedKey(t *testing.T) {
	s := start(t)
	made := s.asAdmin(t, "POST", "/v1/keys", `{"name":"shop"}`).key(t)
	s.asAdmin(t, "DELETE", keyPath(made.ID), "").want(t, http.StatusNoContent, "")
	s.clock.advance(time.Minute)
	s.asAdmin(t, "DELETE", keyPath(made.ID), "").want(t, http.StatusNoContent, "") // again
	for _, c := range []call{
		{method: "PATCH", path: keyPath(made.ID), body: `{"name":"other"}`},
		{method: "PATCH", path: keyPath(made.ID), body: `{}`},
		{method: "POST", path: keyPath(made.ID, "/rotate")},
		{method: "POST", path: keyPath(made.ID, "/rotate"), body: `{"graceSeconds":0}`},
	} {
		got := s.asAdmin(t, c.method, c.path, c.body)
		got.want(t, http.StatusConflict, animalstore.InvalidTransition)
	}
	want := made
	want.Secret, want.RevokedAt = "", noonText
	if got := s.asAdmin(t, "GET", keyPath(made.ID), "").key(t); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	s.asAdmin(t, "GET", keyPath(made.ID, "/usage"), "").want(t, http.StatusOK, "")
	s.do(t, call{path: "/v1/pets", key: made.Secret}).want(t, http.StatusUnauthorized, animalstore.InvalidAPIKey)
}

// TestRotate: a new secret under the same id, and the old one for its grace
// period to the millisecond.
func TestRotate(t *testing.T) {
	t.Parallel()
	for body, grace := range map[string]time.Duration{
		"":                             24 * time.Hour,
		`{}`:                           24 * time.Hour,
		`{"other":1}`:                  24 * time.Hour,
		`{"graceSeconds":60}`:          time.Minute,
		`{"graceSeconds":7776000}`:     90 * 24 * time.Hour,
		`{"graceSeconds":0}`:           0,
		`{"graceSeconds":6.0e1}`:       time.Minute,
		`{"graceSeconds":86400000e-3}`: 24 * time.Hour,
	} {
		t.Run(body, func(t *testing.T) {
			s := start(t)
			old, id := s.with(t, readWrite, func(k *animalstore.NewKey) { k.Limits = animalstore.Limits{PerMinute: 9, PerDay: 999} })
			s.do(t, call{path: "/v1/pets", key: old}).wantLimits(t, 9, 8, s.clock.Now().Add(time.Minute))
			before := s.asAdmin(t, "GET", keyPath(id), "").key(t)
			s.clock.advance(2 * time.Second)
			response := s.asAdmin(t, "POST", keyPath(id, "/rotate"), body)
			response.want(t, http.StatusOK, "")
			got := response.key(t)
			response.wantSecretOnce(t, s, got)
			before.Secret, before.LastUsedAt = got.Secret, got.LastUsedAt
			if !reflect.DeepEqual(got, before) || got.Secret == old {
				t.Errorf("got %+v, want the same key with a new secret", got)
			}
			s.clock.advance(time.Second) // by then the rotation has an effect
			left := int64(7)
			for _, secret := range []string{old, got.Secret} {
				if secret == old && grace == 0 {
					s.do(t, call{path: "/v1/pets", key: old}).want(t, http.StatusUnauthorized, animalstore.InvalidAPIKey)
					continue
				}
				s.do(t, call{path: "/v1/pets", key: secret}).wantLimits(t, 9, left, s.clock.Now().Add(57*time.Second))
				left--
			}
			if grace > 0 {
				end := s.clock.Now().Add(grace - time.Second)
				s.clock.set(end.Add(-time.Millisecond))
				s.do(t, call{path: "/v1/pets", key: old}).want(t, http.StatusOK, "")
				s.clock.set(end)
				s.do(t, call{path: "/v1/pets", key: old}).want(t, http.StatusUnauthorized, animalstore.InvalidAPIKey)
			}
			s.do(t, call{path: "/v1/pets", key: got.Secret}).want(t, http.StatusOK, "")
		})
	}
}

func TestRotateRefused(t *testing.T) {
	s := start(t)
	secret, id := s.with(t, readWrite, nil)
	for body, message := range map[string]string{
		`{"graceSeconds":-1}`:      "graceSeconds must be from 0 to 7776000",
		`{"graceSeconds":7776001}`: "graceSeconds",
		`{"graceSeconds":1e30}`:    "graceSeconds",
		`{"graceSeconds":0.5}`:     "graceSeconds",
		`{"graceSeconds":"60"}`:    "graceSeconds",
		`{"graceSeconds":null}`:    "graceSeconds",
	} {
		got := s.do(t, call{method: "POST", path: keyPath(id, "/rotate"), body: body, key: s.admin, bad: true})
		got.want(t, http.StatusBadRequest, animalstore.ValidationFailed)
		got.wantMessage(t, message)
	}
	s.clock.advance(48 * time.Hour)
	s.do(t, call{path: "/v1/pets", key: secret}).want(t, http.StatusOK, "")
}

// TestKeyNotFound: every operation on a key that doesn't exist returns 404.
func TestKeyNotFound(t *testing.T) {
	s := start(t)
	for _, id := range []string{"99", "0", "-1", "01", "1.0", "+1", "abc", "9223372036854775808", "%31x", "ast_live_x", "1%00"} {
		for _, op := range []struct{ method, rest, body string }{
			{"GET", "", ""}, {"PATCH", "", `{"name":"x"}`}, {"DELETE", "", ""},
			{"POST", "/rotate", ""}, {"POST", "/rotate", `{"graceSeconds":0}`}, {"POST", "/unban", ""}, {"GET", "/usage", ""},
		} {
			t.Run(op.method+" "+id+op.rest+op.body, func(t *testing.T) {
				got := s.do(t, call{method: op.method, path: "/v1/keys/" + id + op.rest, body: op.body, key: s.admin, bad: true})
				got.want(t, http.StatusNotFound, animalstore.KeyNotFound)
				if id == "99" {
				}
			})
		}
	}
}

// TestBanOfKey: a key shows its ban as soon as it is banned, and no longer than that.
// Its tag changes with it, so that nobody is told 304 about a ban that is over.
func TestBanOfKey(t *testing.T) {
	s := start(t).inProcess()
	secret, id := s.planKey(t, animalstore.PlanFree)
	tag := ""
	// want checks the ban in the responses to GET of the key and the list. changed is
	// whether the tag is another one than before.
	want := func(when, ban string, changed bool) {
		t.Helper()
		type banned struct {
			ID  int64
			Ban json.RawMessage
		}
		var one banned
		var all []banned
		got := s.asAdmin(t, "GET", keyPath(id), "")
		for body, into := range map[string]any{string(got.body): &one, string(s.asAdmin(t, "GET", "/v1/keys", "").body): &all} {
			if err := json.Unmarshal([]byte(body), into); err != nil {
				t.Fatal(err)
			}
		}
		for _, k := range append(all, one) {
			if k.ID == id && string(k.Ban) != ban {
				t.Errorf("%s: got ban %s, want %s", when, k.Ban, ban)
			}
		}
		status := s.do(t, with(call{path: keyPath(id), key: s.admin}, "If-None-Match", tag)).status
		if tag != "" && (status == http.StatusNotModified) == changed {
			t.Errorf("%s: got status %d with the tag from before, want it changed: %t", when, status, changed)
		}
		tag = got.header.Get("ETag")
	}
	want("before", "null", true)
	before := tag
	s.hammer(t, secret).want(t, http.StatusTooManyRequests, animalstore.KeyBanned)
	until := animalstore.At(s.clock.Now().Add(5 * time.Minute).Add(time.Second - 1).Truncate(time.Second))
	want("banned", `{"until":"`+until.String()+`","level":1}`, true)
	change := patch(keyPath(id), `{"name":"till"}`, "If-Match", before)
	change.key = s.admin
	s.do(t, change).want(t, http.StatusPreconditionFailed, animalstore.PreconditionFailed)
	change = patch(keyPath(id), `{"name":"till"}`, "If-Match", tag)
	change.key = s.admin
	s.do(t, change).want(t, http.StatusOK, "")
	want("renamed", `{"until":"`+until.String()+`","level":1}`, true)
	s.clock.advance(6 * time.Minute)
	want("over", "null", true)
	s.hammerOn(t, secret)
	s.asAdmin(t, "POST", keyPath(id, "/unban"), "").want(t, http.StatusOK, "")
	want("lifted", "null", false)
}

// adminKey makes one more key that manages keys.
func (s *service) adminKey(t testing.TB, change ...func(*animalstore.NewKey)) (secret string, id int64) {
	t.Helper()
	return s.makeKey(t, keys.Mint(s.env), append([]func(*animalstore.NewKey){func(k *animalstore.NewKey) { k.Permissions = everything }}, change...)...)
}

const adminID = 2 // of the key that start makes

// TestLastAdmin: no request may leave a deployment without a key that can
// manage keys, whatever other keys there are that could not.
func TestLastAdmin(t *testing.T) {
	t.Parallel()
	others := map[string]func(t *testing.T, s *service){
		"no other": func(*testing.T, *service) {},
		"another that is expired": func(t *testing.T, s *service) {
			s.adminKey(t, func(k *animalstore.NewKey) { k.ExpiresAt = animalstore.At(s.clock.Now()) })
		},
		"another that is revoked": func(t *testing.T, s *service) {
			_, id := s.adminKey(t)
			if _, err := s.revoke(t, id); err != nil {
				t.Fatal(err)
			}
		},
		"another of the other deployment": func(t *testing.T, s *service) {
			s.makeKey(t, keys.Mint(animalstore.Staging), func(k *animalstore.NewKey) { k.Permissions, k.Environment = everything, animalstore.Staging })
		},
	}
	ways := map[string]struct{ method, body string }{
		"revoked":             {"DELETE", ""},
		"demoted":             {"PATCH", `{"permissions":["read","write"]}`},
		"demoted and renamed": {"PATCH", `{"name":"x","permissions":["read"],"plan":"free"}`},
	}
	for other, make := range others {
		for way, c := range ways {
			t.Run(way+" with "+other, func(t *testing.T) {
				s := start(t)
				make(t, s)
				before := s.asAdmin(t, "GET", keyPath(adminID), "")
				got := s.asAdmin(t, c.method, keyPath(adminID), c.body)
				got.want(t, http.StatusConflict, animalstore.LastAdminKey)
				if after := s.asAdmin(t, "GET", keyPath(adminID), ""); string(after.body) != string(before.body) {
					t.Errorf("got %s, want it as it was, %s", after.body, before.body)
				}
				s.adminKey(t)
				if got := s.asAdmin(t, c.method, keyPath(adminID), c.body); got.status >= 300 {
					t.Errorf("with one that can: got %v, want it done", got)
				}
			})
		}
	}
	t.Run("what leaves it an admin is allowed", func(t *testing.T) {
		s := start(t)
		for _, body := range []string{`{"name":"x"}`, `{"plan":"free"}`, `{"permissions":["admin"]}`, `{"expiresAt":"2027-01-01T00:00:00Z"}`} {
			s.asAdmin(t, "PATCH", keyPath(adminID), body).want(t, http.StatusOK, "")
		}
		s.asAdmin(t, "POST", keyPath(adminID, "/rotate"), "").want(t, http.StatusOK, "")
		s.asAdmin(t, "DELETE", keyPath(1), "").want(t, http.StatusNoContent, "") // no admin
	})
}
