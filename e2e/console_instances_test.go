package e2e

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"animalstore/internal/db/postgres/pgtest"
	"animalstore/internal/testenv"
)

// consoleUser uses the console over HTTP. Cookies don't depend on the port, so it is
// the same browser for every instance.
type consoleUser struct {
	t    *testing.T
	http *http.Client
}

func newConsoleUser(t *testing.T) *consoleUser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &consoleUser{t, &http.Client{Jar: jar}}
}

// open returns a page, after redirects, and its path.
func (u *consoleUser) open(s *server, path string) (page, at string) {
	u.t.Helper()
	return u.read(u.http.Get(s.url + path))
}

func (u *consoleUser) post(s *server, path string, form url.Values) (page, at string) {
	u.t.Helper()
	return u.read(u.http.PostForm(s.url+path, form))
}

func (u *consoleUser) read(res *http.Response, err error) (page, at string) {
	u.t.Helper()
	if err != nil {
		u.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		u.t.Fatalf("%s: got %d %s, %v, want 200", res.Request.URL, res.StatusCode, body, err)
	}
	return string(body), res.Request.URL.Path
}

// TestConsoleOnAnyInstance: signing in at one instance works for all of them, even
// after a restart, and so does signing out.
func TestConsoleOnAnyInstance(t *testing.T) {
	t.Parallel()
	testenv.Slow(t)
	database := pgtest.Shared(t).NewDatabase(t, "")
	key := newKey(t, database, "--name", "operator", "--permissions", "read,write,admin")
	one, another := start(t, onDatabase(database)), start(t, onDatabase(database))
	u := newConsoleUser(t)
	u.post(one, "/console/sign-in", url.Values{"key": {key}})
	if page, at := u.open(another, "/console/pets"); at != "/console/pets" || !strings.Contains(page, "operator") {
		t.Errorf("at the other instance: got %s, want the pets", at)
	}
	one.stop()
	one = start(t, onDatabase(database))
	if _, at := u.open(one, "/console/pets"); at != "/console/pets" {
		t.Errorf("after a restart: got %s, want the pets", at)
	}
	address, err := url.Parse(one.url + "/console")
	if err != nil {
		t.Fatal(err)
	}
	cookies := u.http.Jar.Cookies(address)
	u.post(another, "/console/sign-out", nil)
	for _, c := range cookies { // signing out removed them
		u.http.Jar.SetCookies(address, []*http.Cookie{{Name: c.Name, Value: c.Value, Path: "/console"}})
	}
	if _, at := u.open(one, "/console/pets"); at != "/console/sign-in" || len(cookies) != 1 {
		t.Errorf("after signing out: got %s, want the sign-in page", at)
	}
}
