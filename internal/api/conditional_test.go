package api_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/keys"
)

var strongTag = regexp.MustCompile(`^"[\x21\x23-\x7e]+"$`)

// tagged are reads of every kind of resource and list, with a change to each.
func tagged(t testing.TB, s *service) []struct {
	name, path string
	change     call
} {
	pet := s.addOne(t, "available")
	ordered := s.addOne(t, "available")
	order := s.order(t, ordered.ID)
	change := patch(petPath(pet.ID), `{"name":"Max"}`)
	approve := patch(orderPath(order.ID), `{"status":"approved"}`)
	return []struct {
		name, path string
		change     call
	}{
		{"pet", petPath(pet.ID), change},
		{"pets", "/v1/pets", change},
		{"pets, filtered", "/v1/pets?status=available&limit=5&categoryId=7", change},
		{"pets by id", fmt.Sprintf("/v1/pets?id=%d,%d", pet.ID, ordered.ID), change},
		{"order", orderPath(order.ID), approve},
		{"orders", "/v1/store/orders", approve},
		{"category", "/v1/categories/7", put("/v1/categories/7", `{"name":"cats"}`)},
		{"categories", "/v1/categories", put("/v1/categories/7", `{"name":"cats"}`)},
	}
}

// TestETags: a tag is strong, the same for the same bytes, and another once
// they change; who has them already gets 304 and no body.
func TestETags(t *testing.T) {
	for i := range tagged(t, start(t)) {
		s := start(t)
		r := tagged(t, s)[i]
		t.Run(r.name, func(t *testing.T) {
			first := s.do(t, call{path: r.path})
			tag := first.header.Get("ETag")
			if !strongTag.MatchString(tag) || first.status != 200 {
				t.Fatalf("got %v with ETag %q, want a strong one", first, tag)
			}
			s.add(t, animalstore.NewPet{Name: "elsewhere", CategoryID: 7, Status: "sold"}) // another generation
			s.do(t, remove(petPath(read[[]animalstore.Pet](t, s.do(t, call{path: "/v1/pets?limit=1"}), 200)[0].ID)))
			for _, method := range []string{"GET", "HEAD"} {
				if again := s.do(t, call{method: method, path: r.path}); again.header.Get("ETag") != tag || again.status != 200 {
					t.Errorf("%s again: got ETag %q, want %q", method, again.header.Get("ETag"), tag)
				}
				for _, known := range []string{tag, "W/" + tag, `"x", ` + tag, `"x",W/` + tag + `,"y"`, "*", ` , ` + tag + " ,"} {
					got := s.do(t, with(call{method: method, path: r.path}, "If-None-Match", known))
					if got.status != 304 || len(got.body) != 0 || got.header.Get("ETag") != tag {
						t.Errorf("%s with If-None-Match %s: got %v with ETag %q, want 304 with %q", method, known, got, got.header.Get("ETag"), tag)
					}
					if got.header.Get("Link") != first.header.Get("Link") {
						t.Errorf("304: got Link %q, want %q", got.header.Get("Link"), first.header.Get("Link"))
					}
				}
				for _, other := range []string{`"x"`, strings.Trim(tag, `"`), "", `"`, tag[:len(tag)-1], `w/` + tag, `"*"`, `*, ` + tag, "x " + tag} {
					got := s.do(t, bad(with(call{method: method, path: r.path}, "If-None-Match", other)))
					if got.status != 200 || string(got.body) != string(first.body) && method == "GET" {
						t.Errorf("%s with If-None-Match %s: got %v, want 200", method, other, got)
					}
				}
			}
			s.do(t, r.change).want(t, 200, "")
			changed := s.do(t, with(call{path: r.path}, "If-None-Match", tag))
			if changed.status != 200 || changed.header.Get("ETag") == tag || string(changed.body) == string(first.body) {
				t.Errorf("after a change: got %v with ETag %q, want 200 and another than %q", changed, changed.header.Get("ETag"), tag)
			}
		})
	}
}

// TestTagsAreOfBytes: a response to a write has the tag that a read will have,
// and two lists with the same bytes have the same.
func TestTagsAreOfBytes(t *testing.T) {
	s := start(t)
	created := s.do(t, post("/v1/pets", `{"name":"Rex","categoryId":7}`))
	pet := read[animalstore.Pet](t, created, 201)
	same := func(what string, a response, path string) {
		t.Helper()
		if want := s.do(t, call{path: path}); a.header.Get("ETag") != want.header.Get("ETag") || string(a.body) != string(want.body) {
			t.Errorf("%s: got %v with ETag %q, read %v with %q", what, a, a.header.Get("ETag"), want, want.header.Get("ETag"))
		}
	}
	same("POST", created, petPath(pet.ID))
	same("PATCH", s.do(t, patch(petPath(pet.ID), `{"name":"Max"}`)), petPath(pet.ID))
	same("another list", s.do(t, call{path: "/v1/pets?limit=50"}), "/v1/pets?status=available")
	same("an order", s.do(t, post("/v1/store/orders", fmt.Sprintf(`{"petId":%d}`, pet.ID))), orderPath(1))
	same("a moved order", s.do(t, patch(orderPath(1), `{"status":"cancelled"}`)), orderPath(1))
	same("PUT", s.do(t, put("/v1/categories/7", `{"name":"cats"}`)), "/v1/categories/7")
	// A change back is the same state.
	before := s.do(t, call{path: petPath(pet.ID)}).header.Get("ETag")
	s.do(t, patch(petPath(pet.ID), `{"name":"Rex"}`))
	if after := s.do(t, patch(petPath(pet.ID), `{"name":"Max"}`)).header.Get("ETag"); after != before {
		t.Errorf("changed and changed back: got ETag %q, want %q", after, before)
	}
}

// TestNotModifiedLeadsOn: a page can stay as it is while another comes to follow
// it. A client that has the page learns of that.
func TestNotModifiedLeadsOn(t *testing.T) {
	s := start(t)
	older := s.addOne(t, "available")
	s.add(t, slices.Repeat([]animalstore.NewPet{{Name: "Rex", Status: "sold"}}, 3)...)
	const path = "/v1/pets?status=sold&limit=3"
	first := s.do(t, call{path: path})
	if _, next := first.links(t); next != "" {
		t.Fatalf("got next page %s, want none yet", next)
	}
	s.do(t, patch(petPath(older.ID), `{"status":"sold"}`)).want(t, 200, "")
	got := s.do(t, with(call{path: path}, "If-None-Match", first.header.Get("ETag")))
	if _, next := got.links(t); got.status != 304 || next == "" {
		t.Errorf("got %d with Link %s, want 304 and a next page", got.status, got.header.Get("Link"))
	}
}

// TestIfMatch: a write on a stale, weak or malformed tag changes nothing.
func TestIfMatch(t *testing.T) {
	s := start(t)
	writes := []struct {
		name string
		make func(t testing.TB) (path string, write call)
		ok   int
	}{
		{"change a pet", func(t testing.TB) (string, call) {
			path := petPath(s.addOne(t, "available").ID)
			return path, patch(path, `{"name":"Max","status":"sold"}`)
		}, 200},
		{"remove a pet", func(t testing.TB) (string, call) {
			path := petPath(s.addOne(t, "available").ID)
			return path, remove(path)
		}, 204},
		{"move an order", func(t testing.TB) (string, call) {
			path := orderPath(s.order(t, s.addOne(t, "available").ID).ID)
			return path, patch(path, `{"status":"cancelled"}`)
		}, 200},
		{"name a category", func(t testing.TB) (string, call) {
			s.addOne(t, "available")
			return "/v1/categories/7", put("/v1/categories/7", `{"name":"cats"}`)
		}, 200},
	}
	for _, w := range writes {
		t.Run(w.name, func(t *testing.T) {
			path, write := w.make(t)
			before := s.do(t, call{path: path})
			tag := before.header.Get("ETag")
			for _, stale := range []string{`"x"`, "W/" + tag, strings.Trim(tag, `"`), "", `"`, `"*"`, tag[:5] + `"`, `*, ` + tag, `"x", "y"`} {
				got := s.do(t, bad(with(write, "If-Match", stale)))
				got.want(t, 412, animalstore.PreconditionFailed)
				if after := s.do(t, call{path: path}); string(after.body) != string(before.body) {
					t.Fatalf("If-Match %s: it is %s now, was %s", stale, after.body, before.body)
				}
			}
			for _, read := range []string{"GET", "HEAD"} {
				s.do(t, with(call{method: read, path: path}, "If-Match", tag)).want(t, 200, "")
				s.do(t, with(call{method: read, path: path}, "If-Match", `"x"`)).want(t, 412, animalstore.PreconditionFailed)
			}
			s.do(t, with(write, "If-Match", `"x", W/"y",`+tag)).want(t, w.ok, "")
			for _, fresh := range []string{"*", "two lines"} {
				path, write := w.make(t)
				if fresh != "*" {
					write = with(write, "If-Match", `"x"`)
					fresh = s.do(t, call{path: path}).header.Get("ETag")
				}
				s.do(t, with(write, "If-Match", fresh)).want(t, w.ok, "")
			}
		})
	}
}

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
	}
	if got := s.do(t, call{path: path}); got.header.Get("ETag") != tag {
		t.Errorf("got %v after refusals, want the category as it was", got)
	}
	s.do(t, put(path, `{"name":"cats"}`, "If-None-Match", `"x"`)).want(t, http.StatusOK, "")
	s.do(t, put("/v1/categories/8", `{"name":"cats"}`, "If-None-Match", `"x"`)).want(t, http.StatusCreated, "")
	s.do(t, put("/v1/categories/9", `{"name":"cats"}`, "If-None-Match", "*", "If-Match", "*")).want(t, http.StatusPreconditionFailed, animalstore.PreconditionFailed)
}
