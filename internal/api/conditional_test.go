package api_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

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
	rename := func(name string) call { return patch(petPath(pet.ID), fmt.Sprintf(`{"name":%q}`, name)) }
	return []struct {
		name, path string
		change     call
	}{
		{"pet", petPath(pet.ID), rename("Max")},
		{"pets", "/v1/pets", rename("Mia")},
		{"pets, filtered", "/v1/pets?status=available&limit=5&categoryId=7", rename("Zoe")},
		{"pets by id", fmt.Sprintf("/v1/pets?id=%d,%d", pet.ID, ordered.ID), rename("Tom")},
		{"order", orderPath(order.ID), patch(orderPath(order.ID), `{"status":"approved"}`)},
		{"orders", "/v1/store/orders", patch(orderPath(order.ID), `{"status":"cancelled"}`)},
		{"category", "/v1/categories/7", put("/v1/categories/7", `{"name":"cats"}`)},
		{"categories", "/v1/categories", put("/v1/categories/7", `{"name":"dogs"}`)},
	}
}

// TestETags: a tag is strong, the same for the same bytes, and another once
// they change; who has them already gets 304 and no body.
func TestETags(t *testing.T) {
	t.Parallel()
	s := start(t).inProcess()
	for _, r := range tagged(t, s) {
		t.Run(r.name, func(t *testing.T) {
			first := s.do(t, call{path: r.path})
			tag := first.header.Get("ETag")
			if !strongTag.MatchString(tag) || first.status != 200 {
				t.Fatalf("got %v with ETag %q, want a strong one", first, tag)
			}
			s.do(t, remove(petPath(s.addOne(t, "sold").ID))) // another generation
			for _, method := range []string{"GET", "HEAD"} {
				if again := s.do(t, call{method: method, path: r.path}); again.header.Get("ETag") != tag || again.status != 200 {
					t.Errorf("%s again: got ETag %q, want %q", method, again.header.Get("ETag"), tag)
				}
				for _, known := range []string{tag, `"x",W/` + tag + `,"y"`, "*", ` , ` + tag + " ,"} {
					got := s.do(t, with(call{method: method, path: r.path}, "If-None-Match", known))
					if got.status != 304 || len(got.body) != 0 || got.header.Get("ETag") != tag {
						t.Errorf("%s with If-None-Match %s: got %v with ETag %q, want 304 with %q", method, known, got, got.header.Get("ETag"), tag)
					}
					if got.header.Get("Link") != first.header.Get("Link") {
						t.Errorf("304: got Link %q, want %q", got.header.Get("Link"), first.header.Get("Link"))
					}
				}
				for _, other := range []string{`"x"`, strings.Trim(tag, `"`), "", `w/` + tag, `"*"`, `*, ` + tag, "x " + tag} {
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
		if want := s.do(t, call{path: path, key: s.admin}); a.header.Get("ETag") != want.header.Get("ETag") ||
			string(a.body) != string(want.body) {
			t.Errorf("%s: got %v with ETag %q, read %v with %q", what, a, a.header.Get("ETag"), want, want.header.Get("ETag"))
		}
	}
	same("POST", created, petPath(pet.ID))
	same("PATCH", s.do(t, patch(petPath(pet.ID), `{"name":"Max"}`)), petPath(pet.ID))
	same("another list", s.do(t, call{path: "/v1/pets?limit=50"}), "/v1/pets?status=available")
	same("an order", s.do(t, post("/v1/store/orders", fmt.Sprintf(`{"petId":%d}`, pet.ID))), orderPath(1))
	same("a moved order", s.do(t, patch(orderPath(1), `{"status":"cancelled"}`)), orderPath(1))
	same("PUT", s.do(t, put("/v1/categories/7", `{"name":"cats"}`)), "/v1/categories/7")
	_, key := s.makeKey(t, keys.Mint(s.env))
	same("a changed key", s.asAdmin(t, "PATCH", keyPath(key), `{"name":"Büro 🦊","plan":"pro","suspended":true}`), keyPath(key))
	webhook := fmt.Sprint("/v1/webhooks/", s.addWebhook(t).ID)
	same("a changed webhook", s.asAdmin(t, "PATCH", webhook, `{"state":"paused"}`), webhook)
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

// conditional are the operations that check If-Match before they change something.
var conditional = map[string]bool{
	"updatePet": true, "deletePet": true, "deletePhoto": true, "updateOrder": true, "putCategory": true,
	"updateKey": true, "revokeKey": true, "rotateKey": true, "unbanKey": true,
	"updateWebhook": true, "deleteWebhook": true, "rotateWebhook": true,
}

// TestIfMatch: a change with a stale, weak or malformed tag is refused and changes nothing.
func TestIfMatch(t *testing.T) {
	t.Parallel()
	s := start(t).inProcess()
	for _, op := range operations {
		if !conditional[op.id] {
			continue
		}
		// fresh returns a change of a new resource, a read of it and its response.
		fresh := func(t *testing.T) (change, read call, got response) {
			t.Helper()
			change = op.call(t, s)
			change.key = s.admin
			path := strings.TrimSuffix(strings.TrimSuffix(change.path, "/rotate"), "/unban")
			read = call{path: path, key: s.admin}
			return change, read, s.do(t, read)
		}
		t.Run(op.id, func(t *testing.T) {
			change, read, before := fresh(t)
			tag := before.header.Get("ETag")
			for _, stale := range []string{`"x"`, "W/" + tag, strings.Trim(tag, `"`), "", `"*"`, `*, ` + tag, `"x", "y"`} {
				s.do(t, bad(with(change, "If-Match", stale))).want(t, 412, animalstore.PreconditionFailed)
				if after := s.do(t, read); string(after.body) != string(before.body) {
					t.Fatalf("If-Match %s: got %s, want it unchanged: %s", stale, after.body, before.body)
				}
			}
			s.do(t, with(read, "If-Match", tag)).want(t, 200, "")
			s.do(t, with(read, "If-Match", `"x"`)).want(t, 412, animalstore.PreconditionFailed)
			s.do(t, with(change, "If-Match", `"x", W/"y",`+tag)).want(t, op.ok, "")
			change, _, _ = fresh(t)
			s.do(t, with(change, "If-Match", "*")).want(t, op.ok, "")
			change, _, before = fresh(t)
			s.do(t, with(change, "If-Match", `"x"`, "If-Match", before.header.Get("ETag"))).want(t, op.ok, "")
		})
	}
}

// TestIfMatchIsAtomic: a change that another one precedes at the last moment is refused, and
// doesn't overwrite it.
func TestIfMatchIsAtomic(t *testing.T) {
	s := start(t)
	pet := s.addOne(t, "available").ID
	order := s.order(t, s.addOne(t, "available").ID).ID
	_, key := s.makeKey(t, keys.Mint(s.env))
	for _, test := range []struct {
		method string // of the database
		change call
		path   string
		before string // the change that precedes it
	}{
		{"UpdatePet", patch(petPath(pet), `{"name":"Max"}`), petPath(pet), `{"name":"Mia"}`},
		{"DeletePet", remove(petPath(pet)), petPath(pet), `{"name":"Zoe"}`},
		{"PutCategory", put(categoryPath(7), `{"name":"cats"}`), categoryPath(7), `{"name":"dogs"}`},
		{"UpdateOrder", patch(orderPath(order), `{"status":"cancelled"}`), orderPath(order), `{"status":"approved"}`},
		{"UpdateKey", patch(keyPath(key), `{"name":"till"}`), keyPath(key), `{"name":"shop"}`},
	} {
		t.Run(test.method, func(t *testing.T) {
			test.change.key = s.admin
			precedes := call{method: test.change.method, path: test.path, body: test.before, key: s.admin}
			if precedes.method == "DELETE" {
				precedes.method = "PATCH"
			}
			tag := s.do(t, call{path: test.path, key: s.admin}).header.Get("ETag")
			s.db.arm(test.method, func(context.Context) error {
				s.db.arm(test.method, nil)
				s.do(t, precedes).want(t, 200, "")
				return nil
			})
			s.do(t, with(test.change, "If-Match", tag)).want(t, 412, animalstore.PreconditionFailed)
			got := string(s.do(t, call{path: test.path, key: s.admin}).body)
			if want := strings.Trim(test.before, "{}"); !strings.Contains(got, want) {
				t.Errorf("got %s, want %s in it", got, want)
			}
		})
	}
}

// TestTagsWithoutUse: the use of a key and the deliveries of a webhook change what is shown
// of them, not their tags.
func TestTagsWithoutUse(t *testing.T) {
	s := start(t)
	secret, id := s.makeKey(t, keys.Mint(s.env))
	webhook := s.addWebhook(t)
	for path, use := range map[string]func(){
		keyPath(id): func() {
			s.do(t, call{path: "/v1/pets", key: secret}).want(t, http.StatusOK, "")
			if err := s.server.Save(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
		fmt.Sprint("/v1/webhooks/", webhook.ID): func() {
			s.answerPing(t, webhook.ID, http.StatusNoContent)
		},
	} {
		before := s.asAdmin(t, "GET", path, "")
		use()
		after := s.asAdmin(t, "GET", path, "")
		if string(before.body) == string(after.body) || before.header.Get("ETag") != after.header.Get("ETag") {
			t.Errorf("%s: got %s with tag %s, want another body and the tag %s", path, after.body, after.header.Get("ETag"), before.header.Get("ETag"))
		}
	}
}

// TestPutIfNoneMatch: with If-None-Match a PUT can create without replacing.
func TestPutIfNoneMatch(t *testing.T) {
	s := start(t)
	const path = "/v1/categories/7"
	created := s.do(t, put(path, `{"name":"dogs","id":9,"x":1}`, "If-None-Match", "*"))
	created.want(t, http.StatusCreated, "")
	if string(created.body) != `{"id":7,"name":"dogs"}`+"\n" || created.header.Get("Location") != path {
		t.Errorf("got %v at %q, want category 7", created, created.header.Get("Location"))
	}
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
	s.do(t, put("/v1/categories/9", `{"name":"cats"}`, "If-Match", "*")).want(t, http.StatusPreconditionFailed, animalstore.PreconditionFailed)
}
