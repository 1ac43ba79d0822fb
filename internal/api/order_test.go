package api_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/api"
)

// TestOrderOfChecks: a request with several faults gets the response to the first
// of them. Each row has all the faults of the rows below it that fit together.
func TestOrderOfChecks(t *testing.T) {
	s := start(t, func(with *setup) { with.origins = []string{"https://shop.example"} })
	s.add(t, animalstore.NewPet{Name: "Rex"})
	reader, writer, admin := s.key(t, animalstore.Read), s.key(t, animalstore.Write), s.key(t, animalstore.Admin)
	large := bodyOf(api.MaxBody + 1)
	text := http.Header{"Content-Type": {"text/plain"}}
	preflight := http.Header{"Origin": {"https://shop.example"}, "Access-Control-Request-Method": {"DELETE"}}
	tests := []struct {
		name string
		call call
		want int
		code animalstore.Code
	}{
		{"preflight before key and path", call{method: "OPTIONS", path: "/v1/nothing", key: "x", header: preflight}, 204, ""},
		{"key before path", call{path: "/v1/nothing", key: noKey}, 401, "missing_api_key"},
		{"key before OPTIONS", call{method: "OPTIONS", path: "/v1/pets", key: noKey}, 401, "missing_api_key"},
		{"key before body size", call{method: "POST", path: "/v1/pets", key: "x", body: large, header: text}, 401, "invalid_api_key"},
		{"key before query", call{path: "/v1/pets?limit=0", key: noKey}, 401, "missing_api_key"},
		{"path before permission", call{path: "/v1/nothing", key: admin}, 404, "route_not_found"},
		{"path before body", call{method: "POST", path: "/v1/pets/", body: large, header: text}, 404, "route_not_found"},
		{"method before permission", call{method: "DELETE", path: "/v1/pets", key: admin}, 405, "method_not_allowed"},
		{"method before body", call{method: "PUT", path: "/v1/pets", body: large, header: text}, 405, "method_not_allowed"},
		{"method before a petId", call{method: "POST", path: "/v1/pets/abc", key: admin, body: large}, 405, "method_not_allowed"},
		{"permission before body size", call{method: "POST", path: "/v1/pets", key: reader, body: large, header: text}, 403, "insufficient_permission"},
		{"permission before query", call{path: "/v1/pets?limit=0", key: writer}, 403, "insufficient_permission"},
		{"permission before a missing pet", call{path: "/v1/pets/99", key: writer}, 403, "insufficient_permission"},
		{"body size before media type", call{method: "POST", path: "/v1/pets", body: large, header: text}, 413, "payload_too_large"},
		{"media type before JSON", call{method: "POST", path: "/v1/pets", body: "x", header: text}, 415, "unsupported_media_type"},
		{"media type before an empty body", call{method: "POST", path: "/v1/pets", header: text}, 415, "unsupported_media_type"},
		{"JSON before fields", call{method: "POST", path: "/v1/pets", body: `{"name":1`}, 400, "malformed_json"},
		{"fields", call{method: "POST", path: "/v1/pets", body: `{"name":1}`}, 400, "validation_failed"},
		{"the query of a POST is not read", call{method: "POST", path: "/v1/pets?limit=0&cursor=x&%zz", body: `{"name":1}`}, 400, "validation_failed"},
	}
	for _, method := range []string{"CreatePet", "Pet", "Pets", "Orders"} {
		s.db.arm(method, failWith(errors.New("what is refused must not reach storage")))
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.call.bad = true
			s.do(t, test.call).want(t, test.want, test.code)
		})
	}
	t.Run("removal before permission and pet", func(t *testing.T) {
		s.clock.Set(time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC))
		for _, path := range []string{"/v1/pets/1", "/v1/pets/99", "/v1/pets/abc"} {
			s.do(t, call{path: path, key: admin, bad: true}).want(t, http.StatusGone, animalstore.EndpointRemoved)
			s.do(t, call{method: "DELETE", path: path, key: admin, bad: true}).want(t, http.StatusForbidden, animalstore.InsufficientPermission)
			s.do(t, call{method: "PUT", path: path, key: admin, bad: true}).want(t, http.StatusMethodNotAllowed, animalstore.MethodNotAllowed)
			s.do(t, call{path: path, key: noKey, bad: true}).want(t, http.StatusUnauthorized, animalstore.MissingAPIKey)
		}
	})
}
