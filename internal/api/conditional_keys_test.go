package api_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/keys"
)

// TestKeyTag: the tag of a key doesn't change when the key is used, and does when
// it's changed.
func TestKeyTag(t *testing.T) {
	s := start(t)
	secret, id := s.makeKey(t, keys.Mint(s.env))
	path := fmt.Sprint("/v1/keys/", id)
	get := func() response { t.Helper(); return s.do(t, call{path: path, key: s.admin}) }
	first := get()
	tag := first.header.Get("ETag")
	s.clock.advance(time.Hour)
	s.do(t, call{path: "/v1/pets", key: secret}).want(t, http.StatusOK, "")
	if err := s.server.Save(t.Context()); err != nil {
		t.Fatal(err)
	}
	used := get()
	if string(used.body) == string(first.body) {
		t.Fatalf("got %s after its use, want another lastUsedAt", used.body)
	}
	if got := used.header.Get("ETag"); got != tag {
		t.Errorf("got ETag %s after the key was used, want %s as before", got, tag)
	}
	if got := s.do(t, with(call{path: path, key: s.admin}, "If-None-Match", tag)); got.status != http.StatusNotModified {
		t.Errorf("got %v, want 304", got)
	}
	c := patch(path, `{"name":"till"}`, "If-Match", tag)
	c.key = s.admin
	changed := s.do(t, c)
	changed.want(t, http.StatusOK, "")
	if got := changed.header.Get("ETag"); got == tag || got != get().header.Get("ETag") {
		t.Errorf("got ETag %s after a change, want another one, and the one of GET", got)
	}
}

// TestKeyIfMatch: every change of a key is refused unless the tag is the current
// one, and then changes nothing.
func TestKeyIfMatch(t *testing.T) {
	s := start(t)
	for _, change := range []struct{ method, rest, body string }{
		{"PATCH", "", `{"name":"till"}`},
		{"DELETE", "", ""},
		{"POST", "/rotate", `{"graceSeconds":0}`},
		{"POST", "/rotate", ""},
		{"POST", "/unban", ""},
	} {
		t.Run(change.method+change.rest, func(t *testing.T) {
			secret, id := s.makeKey(t, keys.Mint(s.env))
			path := fmt.Sprint("/v1/keys/", id)
			send := func(tag string) response {
				t.Helper()
				return s.do(t, with(call{method: change.method, path: path + change.rest, body: change.body, key: s.admin}, "If-Match", tag))
			}
			before, err := s.db.Key(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			tag := s.do(t, call{path: path, key: s.admin}).header.Get("ETag")
			for _, other := range []string{`"x"`, "W/" + tag, `"x", "y"`} {
				send(other).want(t, http.StatusPreconditionFailed, animalstore.PreconditionFailed)
			}
			if after, err := s.db.Key(t.Context(), id); err != nil || after != before {
				t.Errorf("after refusals: got %+v, %v, want %+v", after, err, before)
			}
			s.do(t, call{path: "/v1/pets", key: secret}).want(t, http.StatusOK, "")
			for _, good := range []string{tag, "*"} {
				_, id := s.makeKey(t, keys.Mint(s.env))
				path = fmt.Sprint("/v1/keys/", id)
				if good == tag {
					good = s.do(t, call{path: path, key: s.admin}).header.Get("ETag")
				}
				if got := send(good); got.status != 200 && got.status != 204 {
					t.Errorf("with If-Match %s: got %v, want success", good, got)
				}
			}
		})
	}
	t.Run("a revoked key", func(t *testing.T) { // 412 comes before 409
		_, id := s.makeKey(t, keys.Mint(s.env))
		if _, err := s.revoke(t, id); err != nil {
			t.Fatal(err)
		}
		for _, c := range []call{patch(fmt.Sprint("/v1/keys/", id), `{"name":"x"}`), post(fmt.Sprint("/v1/keys/", id, "/rotate"), "")} {
			c.key = s.admin
			s.do(t, with(c, "If-Match", `"x"`)).want(t, http.StatusPreconditionFailed, animalstore.PreconditionFailed)
			s.do(t, c).want(t, http.StatusConflict, animalstore.InvalidTransition)
		}
	})
}

// TestPutIfNoneMatch: with If-None-Match a PUT can create without replacing.
func TestPutIfNoneMatch(t *testing.T) {
	s := start(t)
	const path = "/v1/categories/7"
	s.do(t, put(path, `{"name":"dogs"}`, "If-None-Match", "*")).want(t, http.StatusCreated, "")
	tag := s.do(t, call{path: path}).header.Get("ETag")
	for _, sent := range []string{"*", tag, `"x", W/` + tag} {
		got := s.do(t, put(path, `{"name":"cats"}`, "If-None-Match", sent))
		got.want(t, http.StatusPreconditionFailed, animalstore.PreconditionFailed)
		got.wantMessage(t, "If-None-Match")
	}
	if got := s.do(t, call{path: path}); got.header.Get("ETag") != tag {
		t.Errorf("got %v after refusals, want the category as it was", got)
	}
	s.do(t, put(path, `{"name":"cats"}`, "If-None-Match", `"x"`)).want(t, http.StatusOK, "")
	s.do(t, put("/v1/categories/8", `{"name":"cats"}`, "If-None-Match", `"x"`)).want(t, http.StatusCreated, "")
	s.do(t, put("/v1/categories/9", `{"name":"cats"}`, "If-None-Match", "*", "If-Match", "*")).want(t, http.StatusPreconditionFailed, animalstore.PreconditionFailed)
}
