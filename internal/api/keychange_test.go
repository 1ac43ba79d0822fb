package api_test

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/keys"
)

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

// TestKeyBodyBeforeKey: a body that fits no key is told so, whether or not there
// is a key or it could be changed.
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
		got.wantMessage(t, "revoked")
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
			left := int64(7)
			for _, secret := range []string{old, got.Secret} {
				if secret == old && grace == 0 {
					s.do(t, call{path: "/v1/pets", key: old}).want(t, http.StatusUnauthorized, animalstore.InvalidAPIKey)
					continue
				}
				s.do(t, call{path: "/v1/pets", key: secret}).wantLimits(t, 9, left, s.clock.Now().Add(58*time.Second))
				left--
			}
			if grace > 0 {
				end := s.clock.Now().Add(grace)
				s.clock.set(end.Add(-time.Millisecond))
				s.do(t, call{path: "/v1/pets", key: old}).want(t, http.StatusOK, "")
				s.clock.set(end)
				s.do(t, call{path: "/v1/pets", key: old}).want(t, http.StatusUnauthorized, animalstore.InvalidAPIKey)
			}
			s.do(t, call{path: "/v1/pets", key: got.Secret}).want(t, http.StatusOK, "")
		})
	}
}

// TestRotateTwice: a second rotation doesn't extend the grace period of the first.
func TestRotateTwice(t *testing.T) {
	s := start(t)
	first, id := s.with(t, readWrite, nil)
	rotate := func(grace int) string {
		t.Helper()
		return s.asAdmin(t, "POST", keyPath(id, "/rotate"), fmt.Sprintf(`{"graceSeconds":%d}`, grace)).key(t).Secret
	}
	second := rotate(60)
	s.clock.advance(10 * time.Second)
	third := rotate(3_600)
	check := func(after string, want ...int) {
		t.Helper()
		for i, secret := range []string{first, second, third} {
			if got := s.do(t, call{path: "/v1/pets", key: secret}); got.status != want[i] {
				t.Errorf("%s: secret %d: got %v, want %d", after, i+1, got, want[i])
			}
		}
	}
	check("at once", 200, 200, 200)
	s.clock.advance(50 * time.Second)
	check("after the first grace period", 401, 200, 200)
	rotate(0)
	s.clock.advance(time.Second)
	check("after one without", 401, 401, 401)
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

// TestKeyNotFound: for every operation on a key, whatever names none.
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
				got.wantMessage(t, "there is no")
			})
		}
	}
}

// TestKeysOfTheOtherDeployment can be managed from here, and stay there.
func TestKeysOfTheOtherDeployment(t *testing.T) {
	s := start(t)
	_, id := s.makeKey(t, keys.Mint(animalstore.Staging), func(k *animalstore.NewKey) { k.Environment = animalstore.Staging })
	got := s.asAdmin(t, "POST", keyPath(id, "/rotate"), "").key(t)
	if got.Environment != "staging" || keys.Environment(got.Secret) != animalstore.Staging {
		t.Errorf("got %+v, want a secret for staging", got)
	}
}
