package api_test

import (
	"net/http"
	"slices"
	"testing"

	"animalstore"
	"animalstore/internal/api"
)

// documented is the operation as the document has it.
func documented(t testing.TB, id string) []int {
	t.Helper()
	for _, item := range document().Paths.Map() {
		for _, op := range item.Operations() {
			if op.OperationID == id {
				statuses := []int{}
				for status := range op.Responses.Map() {
					statuses = append(statuses, int(atoi(t, status)))
				}
				return statuses
			}
		}
	}
	t.Fatalf("%s is not in the document", id)
	return nil
}

// TestEveryOperation provokes of each operation what they have in common, and
// finds it documented exactly where it comes up.
func TestEveryOperation(t *testing.T) {
	s := start(t)
	exhausted := s.limitedKey(t, 1, 1_000)
	s.do(t, call{path: "/v1/pets", key: exhausted})
	for _, op := range operations {
		t.Run(op.id, func(t *testing.T) {
			statuses := documented(t, op.id)
			provoke := func(status int, code animalstore.Code, change func(*call)) {
				t.Helper()
				c := op.call(t, s)
				c.key, c.bad = s.admin, true
				change(&c)
				got := s.do(t, c)
				if got.status != status || got.code() != code {
					t.Errorf("got %v, want %d %s", got, status, code)
				}
				if !slices.Contains(statuses, status) {
					t.Errorf("got %d, want it documented along with %d", status, statuses)
				}
			}
			provoke(401, "missing_api_key", func(c *call) { c.key = noKey })
			provoke(429, "rate_limit_exceeded", func(c *call) { c.key = exhausted })
			c := op.call(t, s)
			if c.reads() {
				provoke(304, "", func(c *call) { c.header = http.Header{"If-None-Match": {"*"}} })
				provoke(412, "precondition_failed", func(c *call) { c.header = http.Header{"If-Match": {`"x"`}} })
			}
			if c.body != "" {
				provoke(400, "malformed_json", func(c *call) { c.body = "{" })
				provoke(413, "payload_too_large", func(c *call) { c.body = bodyOf(api.MaxBody + 1) })
				provoke(415, "unsupported_media_type", func(c *call) { c.header = http.Header{"Content-Type": {"text/plain"}} })
			} else if slices.Contains(statuses, 415) || slices.Contains(statuses, 413) {
				t.Errorf("got %d documented, want neither 413 nor 415: it reads no body", statuses)
			}
		})
	}
}
