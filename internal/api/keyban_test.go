package api_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"animalstore"
)

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
