package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
)

// TestPets: a pet's life, by forms alone.
func TestPets(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(everything)
	s.category(7, "dogs")
	form := b.get("/console/pets/new").form(t, "/console/pets", "name", "Rex", "category", "dogs (7)")
	b.post("/console/pets", form).wantMoved(t, "add", "/console/pets/1").wantDone(t, "added")
	b.get("/console/pets?category=dogs").want(t, "a category", http.StatusOK, "Rex")

	page := b.get("/console/pets/1/edit")
	b.post("/console/pets/1", page.form(t, "/console/pets/1", "name", "Max", "status", "pending")).wantMoved(t, "change", "/console/pets/1").wantDone(t, "saved")
	page = b.get("/console/pets/1")
	b.post("/console/pets/1/remove", page.form(t, "/console/pets/1/remove", "etag", `"stale"`)).want(t, "a stale removal", http.StatusPreconditionFailed)
	b.post("/console/pets/1/remove", page.form(t, "/console/pets/1/remove")).wantMoved(t, "remove", "/console/pets").wantDone(t, "removed")
	b.get("/console/pets/1").want(t, "removed", http.StatusNotFound)

	s.Advance(5 * 365 * 24 * time.Hour) // the operation that reads one pet is removed
	s.Pet("Tom")
	b = s.signedIn(everything)
	page = b.get("/console/pets/2/edit")
	b.post("/console/pets/2", page.form(t, "/console/pets/2", "name", "Max")).wantMoved(t, "change in 2031", "/console/pets/2").wantDone(t, "saved")
	b.get("/console/pets/2").want(t, "in 2031", http.StatusOK, "Max")
	b.get("/console/pets/1").want(t, "removed, in 2031", http.StatusNotFound)
}

// TestStaleChanges: a change of something that somebody else changed is refused, with both
// versions shown, and can then be made anyway.
func TestStaleChanges(t *testing.T) {
	t.Parallel()
	s := start(t)
	pet := s.Pet("Rex")
	_, keyID := s.Key("theirs", animalstore.Read, 60)
	ours, theirs := s.signedIn(everything), s.signedIn(everything)
	for _, path := range []string{fmt.Sprint("/console/pets/", pet.ID), "/console/categories/1", fmt.Sprint("/console/keys/", keyID)} {
		form := path
		if strings.HasPrefix(path, "/console/pets/") {
			form += "/edit"
		}
		page := ours.get(form)
		mine := page.form(t, path, "name", "mine & <b>")
		theirs.post(path, page.form(t, path, "name", "theirs now")).wantMoved(t, path+": theirs", path).wantDone(t, "saved")
		conflict := ours.post(path, mine)
		conflict.want(t, path, http.StatusPreconditionFailed, "<bdi>mine &amp; &lt;b&gt;</bdi>", "<bdi>theirs now</bdi>")
		ours.post(path, conflict.form(t, path)).wantMoved(t, path+": anyway", path).wantDone(t, "saved")
		ours.get(path).want(t, path+": after", http.StatusOK, "mine &amp; &lt;b&gt;")
	}
}

// TestOrders: the buttons are the moves that are allowed, and no other.
func TestOrders(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(everything)
	path := fmt.Sprint("/console/pets/", s.Pet("Rex").ID)
	status := regexp.MustCompile(`name="status" value="([a-z]+)"`)
	want := func(order shown, moves ...string) {
		t.Helper()
		var got []string
		for _, m := range status.FindAllStringSubmatch(order.body, -1) {
			got = append(got, m[1])
		}
		if fmt.Sprint(got) != fmt.Sprint(moves) {
			t.Errorf("got the moves %q, want %q", got, moves)
		}
	}
	move := func(order shown, to, then string) shown {
		t.Helper()
		b.post("/console/orders/1", order.form(t, "/console/orders/1", "status", to)).wantMoved(t, to, "/console/orders/1").wantDone(t, to)
		b.get(path).want(t, to, http.StatusOK, `<span class="tag `+then+`">`)
		return b.get("/console/orders/1")
	}
	pet := b.get(path)
	b.post("/console/orders", pet.form(t, "/console/orders")).wantMoved(t, "place", "/console/orders/1").wantDone(t, "placed")
	ordered := b.get(path)
	if strings.Contains(ordered.body, path+"/remove") || strings.Contains(ordered.body, `action="/console/orders"`) || strings.Contains(ordered.body, "<option>sold") {
		t.Errorf("an ordered pet can be removed, ordered or sold, want none of it:\n%s", ordered.body)
	}
	b.post("/console/orders", pet.form(t, "/console/orders", "once", strings.Repeat("n", 30))).want(t, "order again", http.StatusConflict)
	order := b.get("/console/orders/1")
	want(order, "approved", "cancelled")
	stale := order
	order = move(order, "approved", "pending")
	want(order, "delivered", "cancelled")
	b.post("/console/orders/1", stale.form(t, "/console/orders/1", "status", "cancelled")).want(t, "a stale move", http.StatusPreconditionFailed)
	b.post("/console/orders/1", order.form(t, "/console/orders/1", "status", "placed")).want(t, "a forbidden move", http.StatusConflict)
	want(move(order, "delivered", "sold"))
	b.post("/console/orders/1", order.form(t, "/console/orders/1", "status", "delivered")).wantMoved(t, "deliver again", "/console/orders/1").wantDone(t, "unchanged")
	b.get("/console/orders?status=delivered").want(t, "the list", http.StatusOK, "Rex")
	if err := s.DB.DeletePet(t.Context(), 1, func(*animalstore.Pet, bool) error { return nil }); err != nil {
		t.Fatal(err)
	}
	b.get("/console/orders?status=all").want(t, "after the pet was removed", http.StatusOK, "<em>pet</em>")
	b.get("/console/orders/1").want(t, "after the pet was removed", http.StatusOK, "<em>removed</em>")
}

// TestKeys: a key's life, by forms alone. The secret is shown once.
func TestKeys(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(everything)
	secretOf := func(p shown) string {
		t.Helper()
		return regexpFind(t, p.body, `<code id="secret">(ast_live_[0-9A-Za-z]{38})</code>`)
	}
	works := func(secret string) bool { return s.browser().signIn(secret).status == http.StatusSeeOther }
	form := b.get("/console/keys/new").form(t, "/console/keys", "name", "partner", "plan", "enterprise", "perMinute", "50", "perDay", "5000", "expires", "2026-12-24T18:00:00")
	secret := secretOf(b.post("/console/keys", form))
	if !works(secret) {
		t.Error("the new key doesn't work")
	}
	page := b.get("/console/keys/2")
	page.want(t, "the key", http.StatusOK, "partner", "50 a minute, 5,000 a day", "read, write", `<time datetime="2026-12-24T18:00:00.000Z"`)
	if strings.Contains(page.body, secret) {
		t.Error("the page shows the secret again")
	}
	b.post("/console/keys/2", page.form(t, "/console/keys/2", "name", "renamed", "plan", "pro", "perMinute", "", "perDay", "", "permission", "read")).wantMoved(t, "change", "/console/keys/2").wantDone(t, "saved")
	key, err := s.DB.Key(t.Context(), 2)
	if err != nil || key.Name != "renamed" || key.Plan != animalstore.PlanPro || key.Permissions != animalstore.Read || key.ExpiresAt.IsZero() {
		t.Errorf("got %+v, %v, want the changes and the expiry kept", key, err)
	}

	page = b.get("/console/keys/2")
	rotated := secretOf(b.post("/console/keys/2/rotate", page.form(t, "/console/keys/2/rotate", "graceHours", "1")))
	if !works(secret) || !works(rotated) || secret == rotated {
		t.Error("in the grace period both secrets must work")
	}
	page = b.get("/console/keys/2")
	b.post("/console/keys/2/revoke", page.form(t, "/console/keys/2/revoke", "confirm", "yes")).wantMoved(t, "revoke", "/console/keys/2").wantDone(t, "revoked")
	s.Advance(time.Second)
	if works(rotated) {
		t.Error("the revoked key works")
	}
	page = b.get("/console/keys/2")
	page.want(t, "revoked", http.StatusOK, `<span class="tag revoked">`)
	for _, form := range actionForm.FindAllStringSubmatch(page.body, -1) {
		if form[1] != "/console/sign-out" {
			t.Errorf("a revoked key has a form for %s, want none", form[1])
		}
	}
}

// TestSentTwice: a form that is sent twice takes effect once.
func TestSentTwice(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(everything)
	pet, other := s.Pet("Rex"), s.Pet("Tom")
	petPath, otherPath := fmt.Sprint("/console/pets/", pet.ID), fmt.Sprint("/console/pets/", other.ID)
	for _, c := range []struct {
		what string
		path string
		form func() url.Values
	}{
		{"add a pet", "/console/pets", func() url.Values {
			return b.get("/console/pets/new").form(t, "/console/pets", "name", "New", "category", "1")
		}},
		{"change a pet", petPath, func() url.Values { return b.get(petPath+"/edit").form(t, petPath, "name", "Max") }},
		{"order", "/console/orders", func() url.Values { return b.get(petPath).form(t, "/console/orders") }},
		{"add a category", "/console/categories", func() url.Values {
			return b.get("/console/categories").form(t, "/console/categories", "id", "5", "name", "dogs")
		}},
		{"create a key", "/console/keys", func() url.Values { return b.get("/console/keys/new").form(t, "/console/keys", "name", "twice") }},
		{"rotate a key", "/console/keys/2/rotate", func() url.Values { return b.get("/console/keys/2").form(t, "/console/keys/2/rotate") }},
		{"remove a pet", otherPath + "/remove", func() url.Values { return b.get(otherPath).form(t, otherPath+"/remove") }},
	} {
		form := c.form()
		before := s.content()
		var wg sync.WaitGroup
		results := make([]shown, 4)
		for i := range results {
			one := *b
			wg.Go(func() { results[i] = one.post(c.path, form) })
		}
		wg.Wait()
		after := s.content()
		if again := b.post(c.path, form); again.status >= 500 {
			t.Errorf("%s: again: got %d\n%s", c.what, again.status, again.body)
		}
		if last := s.content(); last != after || before == after && c.what != "rotate a key" {
			t.Errorf("%s: got\n%s\nthen\n%s\nthen\n%s\nwant one change", c.what, before, after, last)
		}
		secrets := 0
		for _, r := range results {
			if r.status >= 500 {
				t.Errorf("%s: got %d\n%s", c.what, r.status, r.body)
			}
			secrets += strings.Count(r.body, `id="secret"`)
		}
		if n := strings.Count(after, "Name:New"); n != 1 {
			t.Errorf("%s: got %d new pets, want 1", c.what, n)
		}
		if strings.Contains(c.what, "a key") && secrets != 1 {
			t.Errorf("%s: got %d secrets, want 1", c.what, secrets)
		}
	}
	orders, err := s.DB.Orders(t.Context(), animalstore.OrderQuery{}, db.Page{Limit: 10})
	if err != nil || len(orders) != 1 {
		t.Errorf("got %d orders (%v), want 1", len(orders), err)
	}
}

// TestHostileNames: a name is text, regardless of its characters, and survives the form it is in.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(everything)
	s.category(1, "dogs")
	for _, name := range []string{
		`"><img src=x onerror=alert(1)>`, `{{.Key}}</title><script>`, "\u202Edesrever\u2066", strings.Repeat("🦄", 1024), "&lt;b&gt; &amp;",
	} {
		form := b.get("/console/pets/new").form(t, "/console/pets", "name", name, "category", "1")
		p := b.post("/console/pets", form)
		if p.status != http.StatusSeeOther {
			t.Errorf("%.40q: got %d, want 303", name, p.status)
			continue
		}
		path, _, _ := strings.Cut(p.location(), "?")
		pages := []shown{b.get(path), b.get("/console/pets"), b.post(path, url.Values{"name": {name}, "category": {"x"}})}
		for _, page := range pages {
			if strings.Contains(page.body, "<script>") || strings.Contains(page.body, "<img src=x") {
				t.Errorf("%.40q: the page contains it as markup:\n%s", name, page.body)
			}
		}
		b.post(path, b.get(path+"/edit").form(t, path, "status", "pending")).wantMoved(t, "save the name again", path).wantDone(t, "saved")
		pets, err := s.DB.Pets(t.Context(), animalstore.PetQuery{}, db.Page{Limit: 1})
		if err != nil || pets[0].Name != name {
			t.Errorf("after saving it again: got %.40q (%v), want %.40q", pets[0].Name, err, name)
		}
	}
	page := b.get("/console/pets?status=%3Cscript%3E&category=%22%3E%3Cscript%3E")
	if strings.Contains(page.body, "<script>") {
		t.Errorf("a filter is on the page as markup:\n%s", page.body)
	}
}
