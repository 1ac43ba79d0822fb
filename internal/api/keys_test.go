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
		{"a name", `{"name":"shop"}`, keyBody{Plan: "free", Limits: free, Permissions: both}},
		{"unknown fields", `{"name":"shop","id":7,"secret":"x","environment":"staging","revokedAt":"x"}`, keyBody{Plan: "free", Limits: free, Permissions: both}},
		{"a plan", `{"name":"shop","plan":"pro"}`, keyBody{Plan: "pro", Limits: animalstore.Limits{PerMinute: 300, PerDay: 10_000}, Permissions: both}},
		{"custom limits", `{"name":"shop","plan":"enterprise","limits":{"perMinute":5,"perDay":7e0}}`, keyBody{Plan: "enterprise", Limits: animalstore.Limits{PerMinute: 5, PerDay: 7}, Permissions: both}},
		{"permissions by resource", `{"name":"shop","permissions":["orders:write","pets:read"]}`, keyBody{Plan: "free", Limits: free, Permissions: []string{"pets:read", "orders:write"}}},
		{"networks", `{"name":"shop","networks":["203.0.113.0/24","127.0.0.1","2001:DB8::/32","::1","::ffff:127.0.0.0/104","127.0.0.1/32"]}`, keyBody{Plan: "free", Limits: free, Permissions: both,
			Networks: []string{"203.0.113.0/24", "127.0.0.1/32", "2001:db8::/32", "::1/128", "127.0.0.0/8"}}},
		{"an expiry", `{"name":"shop","expiresAt":"2026-11-15T13:00:00.1239+01:00"}`, keyBody{Plan: "free", Limits: free, Permissions: both, ExpiresAt: "2026-11-15T12:00:00.123Z"}},
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
	{"null for a name", `"name":null`, "name"},
	{"an unknown plan", `"plan":"gold"`, "plan"},
	{"limits on a fixed plan", `"plan":"pro","limits":{"perMinute":1,"perDay":1}`, "limits"},
	{"a limit of nothing", `"plan":"enterprise","limits":{"perMinute":0,"perDay":1}`, "limits"},
	{"no permissions", `"permissions":[]`, "permissions"},
	{"host bits", `"networks":["203.0.113.0/24","203.0.113.7/24"]`, "number 2"},
	{"a number for a network", `"networks":[1]`, "networks"},
	{"null for networks", `"networks":null`, "networks"},
	{"21 networks", `"networks":["127.0.0.1"` + strings.Repeat(`,"127.0.0.1"`, 20) + `]`, "20"},
	{"an expiry that is now", `"expiresAt":"` + noonText + `"`, "expiresAt"},
	{"an expiry in the past of another zone", `"expiresAt":"2026-11-15T12:59:59+01:00"`, "expiresAt"},
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
		{"a name", `{"name":"Büro 🦊"}`, func(k *keyBody) { k.Name = "Büro 🦊" }},
		{"enterprise", `{"plan":"enterprise","limits":{"perMinute":5,"perDay":7}}`, func(k *keyBody) {
			k.Plan, k.Limits = "enterprise", animalstore.Limits{PerMinute: 5, PerDay: 7}
		}},
		{"permissions", `{"permissions":["admin"]}`, func(k *keyBody) { k.Permissions = []string{"admin"} }},
		{"an expiry", `{"expiresAt":"2027-01-31T12:00:00Z"}`, func(k *keyBody) { k.ExpiresAt = "2027-01-31T12:00:00.000Z" }},
		{"permissions by resource", `{"permissions":["orders:read","pets:write"]}`, func(k *keyBody) { k.Permissions = []string{"pets:write", "orders:read"} }},
		{"networks", `{"networks":["203.0.113.7","2001:db8::/32"]}`, func(k *keyBody) { k.Networks = []string{"203.0.113.7/32", "2001:db8::/32"} }},
		{"suspended", `{"suspended":true}`, func(k *keyBody) { k.SuspendedAt = noonText }},
		{"everything", `{"name":"n","plan":"business","permissions":["read"],"expiresAt":"2027-01-31T12:00:00Z"}`, func(k *keyBody) {
			k.Name, k.Plan, k.Limits, k.Permissions, k.ExpiresAt = "n", "business", business, []string{"read"}, "2027-01-31T12:00:00.000Z"
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			want := s.asAdmin(t, "POST", "/v1/keys", `{"name":"shop"}`).key(t)
			want.Secret = ""
			test.change(&want)
			if got := s.asAdmin(t, "PATCH", keyPath(want.ID), test.body).key(t); !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v\nwant %+v", got, want)
			}
			if got := s.asAdmin(t, "GET", keyPath(want.ID), "").key(t); !reflect.DeepEqual(got, want) {
				t.Errorf("read back: got %+v\nwant %+v", got, want)
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
				s.clock.set(end.Add(-time.Millisecond))
				s.do(t, call{path: "/v1/pets", key: old}).want(t, http.StatusOK, "")
			}
			s.clock.set(end)
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
	s.clock.advance(48 * time.Hour)
	s.do(t, call{path: "/v1/pets", key: secret}).want(t, http.StatusOK, "")
}

// adminKey makes one more key that manages keys.
func (s *service) adminKey(t testing.TB, change ...func(*animalstore.NewKey)) (secret string, id int64) {
	t.Helper()
	return s.makeKey(t, keys.Mint(s.env), append([]func(*animalstore.NewKey){func(k *animalstore.NewKey) { k.Permissions = everything }}, change...)...)
}

// TestLastAdmin: the only key that manages keys can't be revoked, demoted or suspended, and a
// suspended key doesn't count as another.
func TestLastAdmin(t *testing.T) {
	s := start(t)
	const adminID = 2 // of the key that start makes
	s.adminKey(t, func(k *animalstore.NewKey) { k.ExpiresAt = animalstore.At(s.clock.Now()) })
	_, suspended := s.adminKey(t)
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
	other, _ := s.adminKey(t)
	for _, c := range calls {
		c.key = other
		if got := s.do(t, c); got.status >= 300 {
			t.Errorf("%s with another admin: got %v, want it done", c.method, got)
		}
	}
}
