package console_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/keys"
	"animalstore/internal/ratelimit"
)

func TestSignIn(t *testing.T) {
	t.Parallel()
	s := start(t)
	secret, _ := s.Key("shop", everything, 1<<30)
	b := s.browser()
	b.get("/console").wantMoved(t, "signed out", "/console/sign-in?next=%2Fconsole")
	b.get("/console/pets?status=sold").wantMoved(t, "signed out", "/console/sign-in?next=%2Fconsole%2Fpets%3Fstatus%3Dsold")
	page := b.get("/console/sign-in?next=/console/pets%3Fstatus%3Dsold")
	page.want(t, "the form", http.StatusOK, `name="key"`)
	p := b.post("/console/sign-in", page.form(t, "/console/sign-in", "key", " "+secret+"\r\n"))
	p.wantMoved(t, "sign in", "/console/pets?status=sold")
	cookie := p.header.Get("Set-Cookie")
	for _, part := range []string{"; Path=/console;", "; HttpOnly", "; SameSite=Strict", "; Max-Age=43200"} {
		if !strings.Contains(cookie, part) {
			t.Errorf("got the cookie %q, want %q in it", cookie, part)
		}
	}
	if strings.Contains(cookie, "Secure") || strings.Contains(cookie, secret) {
		t.Errorf("got the cookie %q, want no Secure over plain HTTP and no secret", cookie)
	}
	page = b.get("/console/pets")
	page.want(t, "signed in", http.StatusOK, "shop")
	if got := page.header.Get("Cache-Control"); got != "no-store" {
		t.Errorf("got Cache-Control %q, want no-store", got)
	}
	for _, next := range []string{"https://evil.example/console", "//evil.example/console", "/docs", "/console/../docs", `/console/\evil`, "/consoles", "javascript:alert(1)", "/console/sign-out"} {
		p := s.browser().post("/console/sign-in", url.Values{"key": {secret}, "next": {next}})
		if p.location() != "/console" {
			t.Errorf("next=%q: got a redirect to %q, want /console", next, p.location())
		}
	}

	proxied := s.browser()
	proxied.header.Set("X-Forwarded-Proto", "https")
	if cookie := proxied.signIn(secret).header.Get("Set-Cookie"); !strings.Contains(cookie, "; Secure") {
		t.Errorf("behind a proxy with HTTPS: got the cookie %q, want Secure", cookie)
	}
}

// useUpAddress sends more requests without a valid key than an address may, all at once.
func (s *site) useUpAddress() {
	s.T.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		s.T.Fatal(err)
	}
	defer conn.Close()
	const request = "GET /v1/limits HTTP/1.1\r\nHost: store\r\nAuthorization: Bearer x\r\n"
	go io.WriteString(conn, strings.Repeat(request+"\r\n", ratelimit.PerAddress)+request+"Connection: close\r\n\r\n")
	if _, err := io.Copy(io.Discard, conn); err != nil {
		s.T.Fatal(err)
	}
}

// TestWrongKeys: a wrong key is 401 and counts against the address, a right one doesn't.
func TestWrongKeys(t *testing.T) {
	t.Parallel()
	s := start(t)
	secret, _ := s.Key("shop", everything, 1<<30)
	b := s.browser()
	before := s.left("not-a-key-of-this-store")
	wrong := []string{"", "x", keys.Mint(animalstore.Production), keys.Mint(animalstore.Staging), secret + "x", "Bearer " + secret, "ключ", strings.Repeat("k", 5000)}
	for _, key := range wrong {
		p := b.signIn(key)
		p.want(t, "key "+key, http.StatusUnauthorized, `name="key"`, `id="wrong" role="alert"`)
		if b.cookie != "" || key != "" && strings.Contains(p.body, key) && len(key) > 1 {
			t.Errorf("key %q: got a cookie, or the key on the page, want neither", key)
		}
	}
	if p := b.signIn(secret); p.status != http.StatusSeeOther {
		t.Errorf("the right key: got %d, want 303", p.status)
	}
	if got, want := s.left("not-a-key-of-this-store"), before-int64(len(wrong))-1; got != want {
		t.Errorf("the address has %d left, want %d", got, want)
	}
	s.useUpAddress()
	page := b.get("/console/system").body
	for _, asset := range []string{`href="(/console/assets/[^"]*)"`, `href="(/assets/[^"]*\.css)"`} {
		if p := s.browser().get(regexpFind(t, page, asset)); p.status != http.StatusOK {
			t.Errorf("%s: got %d, want 200: a file that never changes is never refused", asset, p.status)
		}
	}
	for name, p := range map[string]shown{"a wrong key": s.browser().signIn("x"), "the form": s.browser().get("/console/sign-in"), "a page": s.browser().get("/console")} {
		p.want(t, name+" from an address over its limit", http.StatusTooManyRequests, "<time")
		if p.header.Get("Retry-After") == "" {
			t.Errorf("%s: got no Retry-After", name)
		}
	}
	s.browser().post("/console/pets", url.Values{"name": {"Rex"}}).want(t, "a form from an address over its limit", http.StatusTooManyRequests, `href="/console/pets/new">Back</a>`)
	b.get("/console").want(t, "somebody who is signed in", http.StatusOK)
	if p := s.browser().signIn(secret); p.status != http.StatusSeeOther {
		t.Errorf("the right key, from an address over its limit: got %d, want 303", p.status)
	}
	for name, b := range map[string]*browser{"signing out": b, "signing out twice": s.browser()} {
		if p := b.post("/console/sign-out", nil); p.status != http.StatusSeeOther {
			t.Errorf("%s from an address over its limit: got %d, want 303", name, p.status)
		}
	}
}

// TestSessionsEnd: with sign-out, 12 hours, the key, or the secret.
func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	s := start(t)
	signedOut := func(what string, b browser) {
		t.Helper()
		for _, path := range []string{"/console", "/console/keys/new"} { // the API would refuse the first, but isn't called for the second
			if p := b.get(path); p.status != http.StatusSeeOther || !strings.HasPrefix(p.location(), "/console/sign-in") {
				t.Errorf("%s: %s: got %d, want to be led to sign in", what, path, p.status)
			}
		}
		if p := b.post("/console/pets", url.Values{"name": {"Rex"}, "category": {"1"}, "status": {"available"}}); p.status != http.StatusUnauthorized {
			t.Errorf("%s: a change got %d, want 401", what, p.status)
		}
	}
	b := s.signedIn(everything)
	stolen := *b
	b.get("/console").want(t, "signed in", http.StatusOK)
	b.post("/console/sign-out", nil).wantMoved(t, "sign out", "/console/sign-in")
	if b.cookie != "" {
		t.Errorf("after signing out, the cookie is %q, want none", b.cookie)
	}
	signedOut("the stolen cookie", stolen)

	secret, id := s.Key("to be revoked", everything, 1<<30)
	b = s.browser()
	b.signIn(secret)
	b.get("/console").want(t, "signed in", http.StatusOK)
	revoke := func(k *animalstore.Key, _ bool) error { k.Revoke(animalstore.At(s.Now())); return nil }
	if _, err := s.DB.UpdateKey(t.Context(), id, animalstore.At(s.Now()), revoke); err != nil {
		t.Fatal(err)
	}
	s.Advance(time.Second)
	signedOut("a revoked key", *b)

	secret, id = s.Key("to be rotated", everything, 1<<30)
	b = s.browser()
	b.signIn(secret)
	now := s.Now()
	if _, err := s.DB.RotateKey(t.Context(), id, db.KeyRotation{Hash: keys.Hash("another"),
		At: animalstore.At(now), OldUntil: animalstore.At(now.Add(time.Hour))}, nil); err != nil {
		t.Fatal(err)
	}
	s.Advance(59 * time.Minute)
	b.get("/console").want(t, "in the grace period", http.StatusOK)
	s.Advance(time.Minute)
	signedOut("after the grace period", *b)

	b = s.signedIn(everything)
	s.Advance(12*time.Hour - time.Second)
	b.get("/console").want(t, "before 12 hours", http.StatusOK)
	s.Advance(time.Second)
	signedOut("after 12 hours", *b)
}

// TestFixation: a token that was planted in a browser is never adopted, and signing in
// again ends the session before.
func TestFixation(t *testing.T) {
	t.Parallel()
	s := start(t)
	secret, _ := s.Key("shop", everything, 1<<30)
	b := s.browser()
	b.cookie = "planted-by-an-attacker-planted-by-an-attacker"
	planted := *b
	b.signIn(secret)
	if b.cookie == planted.cookie {
		t.Fatal("the planted token is that of the session, want a new one")
	}
	if p := planted.get("/console"); p.status != http.StatusSeeOther {
		t.Errorf("with the planted token: got %d, want to be led to sign in", p.status)
	}
	first := *b
	b.signIn(secret)
	if p := first.get("/console"); p.status != http.StatusSeeOther || first.cookie == b.cookie {
		t.Errorf("with the token before: got %d, want to be led to sign in", p.status)
	}
	b.get("/console").want(t, "with the last token", http.StatusOK)
}

// TestOtherOrigins: no change that another site's page sends is made.
func TestOtherOrigins(t *testing.T) {
	t.Parallel()
	s := start(t)
	secret, _ := s.Key("shop", everything, 1<<30)
	b := s.signedIn(everything)
	s.category(1, "dogs")
	form := url.Values{"name": {"Rex"}, "category": {"1"}, "status": {"available"}}
	for name, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"} {
		for _, site := range []string{value, strings.Replace(value, "cross-site", "same-site", 1)} {
			other := *b
			other.header = http.Header{name: {site}}
			other.post("/console/pets", form).want(t, name+" "+site, http.StatusForbidden)
			other.post("/console/sign-out", nil).want(t, name+" "+site, http.StatusForbidden)
			other.cookie = ""
			other.post("/console/sign-in", url.Values{"key": {secret}}).want(t, name+" "+site, http.StatusForbidden)
		}
	}
	b.header = http.Header{"Sec-Fetch-Site": {"same-origin"}, "Origin": {s.URL}}
	b.get("/console/pets").want(t, "the list", http.StatusOK, `class="empty"`)
	if p := b.post("/console/pets", form); p.status != http.StatusSeeOther {
		t.Errorf("from the console's own page: got %d, want 303", p.status)
	}
}

// TestSuspension: nobody signs in with a suspended key. The suites of package db end its
// sessions.
func TestSuspension(t *testing.T) {
	t.Parallel()
	s := start(t)
	admin := s.signedIn(everything)
	secret, id := s.Key("shop", animalstore.PetsRead, 1<<30)
	b := s.browser()
	path := fmt.Sprint("/console/keys/", id)
	page := admin.get(path)
	admin.post(path+"/suspend", page.form(t, path+"/suspend")).wantMoved(t, "suspend", path).wantDone(t, "suspended")
	s.Advance(time.Second)
	b.signIn(secret).want(t, "sign in again", http.StatusForbidden, "suspended")
	page = admin.get(path)
	page.want(t, "the key", http.StatusOK, `<span class="tag suspended">`)
	admin.post(path+"/resume", page.form(t, path+"/resume")).wantMoved(t, "resume", path).wantDone(t, "resumed")
	s.Advance(time.Second)
	b.signIn(secret).wantMoved(t, "sign in after all", "/console")
	admin.post("/console/keys/1/suspend", nil).want(t, "the last admin", http.StatusConflict, `role="alert"`)
}

// TestNetworks: a session works from the networks of its key alone.
func TestNetworks(t *testing.T) {
	t.Parallel()
	s := start(t)
	admin := s.signedIn(everything)
	form := admin.get("/console/keys/new?for=website").form(t, "/console/keys")
	if form.Get("name") != "Website" || fmt.Sprint(form["permission"]) != "[pets:read]" {
		t.Errorf("got the form %v, want that of a website", form)
	}
	form.Set("networks", " 203.0.113.0/24, 2001:db8::1\t")
	secret := regexpFind(t, admin.post("/console/keys", form).body, `<code id="secret">([^<]*)<`)
	admin.get("/console/keys/2").want(t, "the key", http.StatusOK, "203.0.113.0/24, 2001:db8::1/128")

	b := s.browser()
	b.signIn(secret).want(t, "from elsewhere", http.StatusForbidden, "address")
	b.header.Set("X-Forwarded-For", "203.0.113.9")
	b.signIn(secret).wantMoved(t, "from the network", "/console")
	b.get("/console/pets").want(t, "from the network", http.StatusOK)
	b.header.Set("X-Forwarded-For", "198.51.100.1")
	b.get("/console/pets").wantMoved(t, "from elsewhere", "/console/sign-in?next=%2Fconsole%2Fpets")

	own := admin.get("/console/keys/1").form(t, "/console/keys/1", "networks", "203.0.113.0/24")
	admin.post("/console/keys/1", own).want(t, "lock itself out", http.StatusConflict, `class="notice wrong"`)
}
