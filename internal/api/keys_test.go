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
	Permissions, Networks                       []string
	Environment                                 string
	CreatedAt, ExpiresAt, LastUsedAt, RevokedAt string
	SuspendedAt                                 string
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
	free, both := animalstore.Limits{PerMinute: 60, PerDay: 1_000}, []string{"read", "write"}
	tests := []struct {
		name, body string
		want       keyBody
	}{
		{"a name and unknown fields", `{"name":"shop","id":7,"secret":"x","environment":"staging","revokedAt":"x"}`, keyBody{Plan: "free", Limits: free, Permissions: both}},
		{"a plan", `{"name":"shop","plan":"pro"}`, keyBody{Plan: "pro", Limits: animalstore.Limits{PerMinute: 300, PerDay: 10_000}, Permissions: both}},
		{"custom limits", `{"name":"shop","plan":"enterprise","limits":{"perMinute":5,"perDay":7e0}}`, keyBody{Plan: "enterprise", Limits: animalstore.Limits{PerMinute: 5, PerDay: 7}, Permissions: both}},
		{"permissions, networks and an expiry", `{"name":"shop","permissions":["orders:write","pets:read"],"networks":["127.0.0.1","2001:DB8::/32"],"expiresAt":"2026-11-15T13:00:00.1239+01:00"}`,
			keyBody{Plan: "free", Limits: free, Permissions: []string{"pets:read", "orders:write"},
				Networks: []string{"127.0.0.1/32", "2001:db8::/32"}, ExpiresAt: "2026-11-15T12:00:00.123Z"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			response := s.asAdmin(t, "POST", "/v1/keys", test.body)
			response.want(t, http.StatusCreated, "")
			got := response.key(t)
			test.want.ID, test.want.Name, test.want.Secret = got.ID, "shop", got.Secret
			test.want.Environment, test.want.CreatedAt = "production", noonText
			if test.want.Networks == nil {
				test.want.Networks = []string{}
			}
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
			s.do(t, call{path: "/v1/limits", key: got.Secret}).want(t, http.StatusOK, "")
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

// badKeyFields are refused wherever a key is made or changed: each field once. The rules are
// tested where they are, and how they are read in package strictjson.
var badKeyFields = []struct{ name, fields, field string }{
	{"an empty name", `"name":""`, "name"},
	{"limits on a fixed plan", `"plan":"pro","limits":{"perMinute":1,"perDay":1}`, "limits"},
	{"a limit of nothing", `"plan":"enterprise","limits":{"perMinute":0,"perDay":1}`, "limits"},
	{"no permissions", `"permissions":[]`, "permissions"},
	{"an expiry that is now", `"expiresAt":"` + noonText + `"`, "expiresAt"},
}

// TestBadKeyFields: they are refused in a new key and in a change, and nothing is stored.
func TestBadKeyFields(t *testing.T) {
	s := start(t).inProcess()
	id := s.asAdmin(t, "POST", "/v1/keys", `{"name":"shop"}`).key(t).ID
	before := s.asAdmin(t, "GET", "/v1/keys", "")
	for _, test := range badKeyFields {
		t.Run(test.name, func(t *testing.T) {
			created := "{" + test.fields + "}"
			if !strings.Contains(test.fields, `"name"`) {
				created = `{"name":"shop",` + test.fields + "}"
			}
			for _, c := range []call{post("/v1/keys", created), patch(keyPath(id), `{"x":1,`+test.fields+`}`)} {
				c.key, c.bad = s.admin, true
				got := s.do(t, c)
				got.want(t, http.StatusBadRequest, animalstore.ValidationFailed)
				got.wantMessage(t, test.field)
			}
		})
	}
	for body, code := range map[string]animalstore.Code{"": "malformed_json", "{": "malformed_json", "[]": "malformed_json", `{"name":"a","name":"b"}`: "malformed_json", `{"Name":"a"}`: "validation_failed"} {
		s.do(t, call{method: "POST", path: "/v1/keys", body: body, key: s.admin, bad: true}).want(t, http.StatusBadRequest, code)
	}
	if after := s.asAdmin(t, "GET", "/v1/keys", ""); string(after.body) != string(before.body) {
		t.Errorf("got %s, want the keys as they were: %s", after.body, before.body)
	}
}

// TestRotate: a new secret under the same id, and the old one for its grace period.
func TestRotate(t *testing.T) {
	s := start(t)
	for body, grace := range map[string]time.Duration{"": 24 * time.Hour, `{"graceSeconds":6.0e1}`: time.Minute, `{"graceSeconds":0}`: 0} {
		t.Run(body, func(t *testing.T) {
			old, id := s.with(t, readWrite, nil)
			want := s.asAdmin(t, "GET", keyPath(id), "").key(t)
			response := s.asAdmin(t, "POST", keyPath(id, "/rotate"), body)
			response.want(t, http.StatusOK, "")
			got := response.key(t)
			response.wantSecretOnce(t, s, got)
			want.Secret = got.Secret
			if !reflect.DeepEqual(got, want) || got.Secret == old {
				t.Errorf("got %+v, want the same key with a new secret", got)
			}
			end := s.clock.Now().Add(max(grace, time.Second)) // an effect may take a second
			if grace > 0 {
				s.clock.Set(end.Add(-time.Millisecond))
				s.do(t, call{path: "/v1/pets", key: old}).want(t, http.StatusOK, "")
			}
			s.clock.Set(end)
			s.do(t, call{path: "/v1/pets", key: old}).want(t, http.StatusUnauthorized, animalstore.InvalidAPIKey)
			s.do(t, call{path: "/v1/pets", key: got.Secret}).want(t, http.StatusOK, "")
		})
	}
}

// TestBadGrace: a wrong grace period is refused and rotates nothing.
func TestBadGrace(t *testing.T) {
	s := start(t)
	secret, id := s.with(t, readWrite, nil)
	for _, path := range []string{keyPath(id), fmt.Sprint("/v1/webhooks/", s.addWebhook(t).ID)} {
		for _, value := range []string{"-1", "7776001", "1e30", "0.5", `"60"`, "null"} {
			got := s.do(t, call{method: "POST", path: path + "/rotate", body: `{"graceSeconds":` + value + `}`, key: s.admin, bad: true})
			got.want(t, http.StatusBadRequest, animalstore.ValidationFailed)
			got.wantMessage(t, "graceSeconds")
		}
	}
	s.clock.Advance(48 * time.Hour)
	s.do(t, call{path: "/v1/pets", key: secret}).want(t, http.StatusOK, "")
}

// TestLastAdmin: the only key that manages keys can't be revoked, demoted or suspended, and a
// suspended key doesn't count as another.
func TestLastAdmin(t *testing.T) {
	s := start(t)
	const adminID = 2 // of the key that start makes
	s.with(t, everything, func(k *animalstore.NewKey) { k.ExpiresAt = animalstore.At(s.clock.Now()) })
	_, suspended := s.with(t, everything, nil)
	s.suspend(t, suspended, true)
	calls := []call{
		patch(keyPath(adminID), `{"suspended":true}`), patch(keyPath(adminID), `{"name":"x","permissions":["read"]}`), remove(keyPath(adminID)),
	}
	before := s.asAdmin(t, "GET", keyPath(adminID), "")
	for _, c := range calls {
		s.asAdmin(t, c.method, c.path, c.body).want(t, http.StatusConflict, animalstore.LastAdminKey)
	}
	if after := s.asAdmin(t, "GET", keyPath(adminID), ""); string(after.body) != string(before.body) {
		t.Errorf("got %s, want it as it was, %s", after.body, before.body)
	}
	for _, body := range []string{`{"plan":"free"}`, `{"permissions":["admin"]}`, `{"expiresAt":"2027-01-01T00:00:00Z"}`} {
		s.asAdmin(t, "PATCH", keyPath(adminID), body).want(t, http.StatusOK, "")
	}
	other, _ := s.with(t, everything, nil)
	for _, c := range calls {
		c.key = other
		if got := s.do(t, c); got.status >= 300 {
			t.Errorf("%s with another admin: got %v, want it done", c.method, got)
		}
	}
}
