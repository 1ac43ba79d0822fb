package console_test

import (
	"html"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/server"
	"animalstore/internal/server/servertest"
	"animalstore/internal/testenv"
)

const everything = animalstore.Read | animalstore.Write | animalstore.Admin

// site is a server with the transport that its browsers use.
type site struct {
	*servertest.Store
	http *http.Transport
}

func start(t *testing.T, change ...func(*server.Config)) *site {
	t.Helper()
	s := &site{http: &http.Transport{MaxIdleConnsPerHost: 32}}
	s.Store = servertest.Start(t, s.http, append([]func(*server.Config){func(c *server.Config) {
		c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		c.WebhookNetworks = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")} // nothing is sent without background work
		// A stop waits this long for the first request of a new connection: less than Drain.
		c.Timeouts = server.Timeouts{ReadHeader: 10 * time.Second, Write: time.Minute, Idle: time.Minute, Drain: time.Minute}
	}}, change...)...)
	return s
}

// startInBubble starts a server in a bubble of synctest, with the time limits that it has in
// production. Its connections are pipes.
func startInBubble(t *testing.T) *site {
	network := testenv.NewPipes()
	s := start(t, func(c *server.Config) {
		c.Listener, c.Timeouts, c.Hooks.RequestTimeout = network, server.DefaultTimeouts, 0
	})
	s.http.DialContext = network.Dial
	return s
}

// category sets the name of a category.
func (s *site) category(id int64, name string) {
	s.T.Helper()
	if _, err := s.DB.PutCategory(s.T.Context(), animalstore.Category{ID: id, Name: name},
		func(*animalstore.Category) error { return nil }); err != nil {
		s.T.Fatal(err)
	}
}

// webhook creates a webhook with the id 1.
func (s *site) webhook() {
	s.T.Helper()
	webhook := animalstore.NewWebhook{URL: "https://192.0.2.1/", Types: animalstore.DefaultEventPatterns}
	if _, err := s.DB.CreateWebhook(s.T.Context(), webhook, "whsec_b25l", animalstore.At(s.Now())); err != nil {
		s.T.Fatal(err)
	}
}

// browser is somebody who looks at the console.
type browser struct {
	s      *site
	cookie string      // the value of the session's
	done   string      // what was just done
	header http.Header // sent with every request
}

// shown is a page that the browser got.
type shown struct {
	status int
	header http.Header
	body   string
}

func (s *site) browser() *browser { return &browser{s: s, header: http.Header{}} }

// signedIn returns a browser that is signed in with a new key.
func (s *site) signedIn(permissions animalstore.Permissions) *browser {
	s.T.Helper()
	secret, _ := s.Key(permissions.String(), permissions, 1<<30)
	b := s.browser()
	if p := b.signIn(secret); p.status != http.StatusSeeOther || b.cookie == "" {
		s.T.Fatalf("sign in: got %d %s, want a session", p.status, p.body)
	}
	return b
}

func (b *browser) signIn(secret string) shown {
	return b.post("/console/sign-in", url.Values{"key": {secret}})
}

func (b *browser) get(path string) shown { return b.do(http.MethodGet, path, nil) }

func (b *browser) post(path string, form url.Values) shown { return b.do(http.MethodPost, path, form) }

// do sends a request. It follows no redirect.
func (b *browser) do(method, path string, form url.Values) shown {
	b.s.T.Helper()
	req, err := http.NewRequest(method, b.s.URL+path, strings.NewReader(form.Encode()))
	if err != nil {
		b.s.T.Fatal(err)
	}
	for name, values := range b.header {
		req.Header[name] = values
	}
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return b.roundTrip(req)
}

// roundTrip sends a request with the cookies, and keeps those of the response.
func (b *browser) roundTrip(req *http.Request) shown {
	b.s.T.Helper()
	if b.cookie != "" {
		req.AddCookie(&http.Cookie{Name: "animalstore_session", Value: b.cookie})
	}
	if b.done != "" {
		req.AddCookie(&http.Cookie{Name: "animalstore_done", Value: b.done})
	}
	res, err := b.s.http.RoundTrip(req)
	if err != nil {
		b.s.T.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		b.s.T.Fatal(err)
	}
	for _, c := range res.Cookies() {
		switch c.Name {
		case "animalstore_session":
			b.cookie = c.Value
		case "animalstore_done":
			b.done = c.Value
		}
	}
	return shown{res.StatusCode, res.Header, string(body)}
}

func (p shown) location() string { return p.header.Get("Location") }

// want fails the test unless the page has this status and all parts in it.
func (p shown) want(t *testing.T, what string, status int, parts ...string) {
	t.Helper()
	if p.status != status {
		t.Errorf("%s: got %d %q, want %d\n%s", what, p.status, p.location(), status, p.body)
		return
	}
	for _, part := range parts {
		if !strings.Contains(p.body, part) {
			t.Errorf("%s: got no %q in\n%s", what, part, p.body)
		}
	}
}

// wantMoved fails the test unless the response is a redirect to this path.
func (p shown) wantMoved(t *testing.T, what, path string) shown {
	t.Helper()
	if p.status != http.StatusSeeOther || p.location() != path {
		t.Errorf("%s: got %d to %q, want 303 to %q\n%s", what, p.status, p.location(), path, p.body)
	}
	return p
}

// wantDone fails the test unless the next page is told to say that this was done.
func (p shown) wantDone(t *testing.T, done string) {
	t.Helper()
	for _, line := range p.header["Set-Cookie"] {
		if strings.HasPrefix(line, "animalstore_done="+done+";") {
			return
		}
	}
	t.Errorf("got the cookies %q, want animalstore_done=%s", p.header["Set-Cookie"], done)
}

var (
	formTag   = regexp.MustCompile(`(?s)<form[^>]*method="post"[^>]*action="([^"]*)"[^>]*>(.*?)</form>`)
	inputTag  = regexp.MustCompile(`<input [^>]*>`)
	attribute = regexp.MustCompile(`([a-z]+)="([^"]*)"`)
	selectTag = regexp.MustCompile(`(?s)<select[^>]*name="([^"]*)"[^>]*>(.*?)</select>`)
	optionTag = regexp.MustCompile(`<option(?: value="[^"]*")?( selected)?>([^<]*)</option>`)
)

// form returns the values of a page's form, as a browser would send them, with some of
// them replaced.
func (p shown) form(t *testing.T, action string, replace ...string) url.Values {
	t.Helper()
	for _, form := range formTag.FindAllStringSubmatch(p.body, -1) {
		if form[1] != action {
			continue
		}
		values := url.Values{}
		for _, tag := range inputTag.FindAllString(form[2], -1) {
			attributes := map[string]string{}
			for _, a := range attribute.FindAllStringSubmatch(tag, -1) {
				attributes[a[1]] = html.UnescapeString(a[2])
			}
			if attributes["type"] == "checkbox" && !strings.Contains(tag, " checked") {
				continue
			}
			values.Add(attributes["name"], attributes["value"])
		}
		for _, s := range selectTag.FindAllStringSubmatch(form[2], -1) {
			for i, o := range optionTag.FindAllStringSubmatch(s[2], -1) {
				if i == 0 || o[1] != "" {
					values.Set(s[1], html.UnescapeString(o[2]))
				}
			}
		}
		for i := 0; i+1 < len(replace); i += 2 {
			values.Set(replace[i], replace[i+1])
		}
		return values
	}
	t.Fatalf("got no form with action %s in\n%s", action, p.body)
	return nil
}

// left asks the API how many requests a key has left this minute.
func (s *site) left(secret string) int64 {
	s.T.Helper()
	req, err := http.NewRequest(http.MethodGet, s.URL+"/v1/limits", nil)
	if err != nil {
		s.T.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+secret)
	res, err := s.http.RoundTrip(req)
	if err != nil {
		s.T.Fatal(err)
	}
	defer res.Body.Close()
	io.Copy(io.Discard, res.Body) // so that the connection is used again
	n, err := strconv.ParseInt(res.Header.Get("X-RateLimit-Remaining"), 10, 64)
	if err != nil {
		s.T.Fatal(err)
	}
	return n
}

// regexpFind returns the first group of the first match.
func regexpFind(t *testing.T, text, pattern string) string {
	t.Helper()
	match := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if match == nil {
		t.Fatalf("got no %s in\n%s", pattern, text)
	}
	return match[1]
}
