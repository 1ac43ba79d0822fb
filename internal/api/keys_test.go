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
