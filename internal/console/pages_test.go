package console_test

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/console"
	"animalstore/internal/db"
	"animalstore/internal/server"
)

// target fills in the path of a route, with things that exist.
func (s *site) target(pattern string) (method, path string) {
	method, path, _ = strings.Cut(pattern, " ")
	id := int64(1)
	switch {
	case strings.HasPrefix(path, "/console/pets/{id}"):
		id = s.Pet("Rex").ID
	case strings.HasPrefix(path, "/console/orders/{id}"):
		id = s.order(s.Pet("Tom").ID).ID
	case strings.HasPrefix(path, "/console/photos/{id}"):
		id = s.Photo(s.Pet("Mia").ID).ID
	case strings.HasPrefix(path, "/console/keys/{id}"):
		_, id = s.Key("another", animalstore.Read, 60)
	}
	return method, strings.NewReplacer("{id}", fmt.Sprint(id), "{delivery}", "1", "{photo}", "1").Replace(path)
}

var actionForm = regexp.MustCompile(`<form[^>]*method="post"[^>]*action="([^"]*)"`)

// TestNeeds: what each page and action needs, by the beginning of its route. The longest
// one counts.
func TestNeeds(t *testing.T) {
	want := map[string]string{
		"GET /console/pets": "pets:read", "POST /console/pets": "pets:write",
		"GET /console/pets/new": "pets:write", "GET /console/pets/import": "pets:write", "GET /console/pets/{id}/edit": "pets:write",
		"GET /console/photos": "pets:read", "GET /console/find": "pets:read",
		"GET /console/categories": "pets:read", "POST /console/categories": "pets:write",
		"GET /console/orders": "orders:read", "POST /console/orders": "orders:write",
		"GET /console/events": "pets:read,orders:read",
		"GET /console/usage":  "", "GET /console/failures": "",
		"GET /console/keys": "admin", "POST /console/keys": "admin",
		"GET /console/webhooks": "admin", "POST /console/webhooks": "admin",
		"GET /console/system": "admin",
	}
	for _, route := range console.Routes() {
		longest := ""
		for beginning := range want {
			if strings.HasPrefix(route.Pattern, beginning) && len(beginning) > len(longest) {
				longest = beginning
			}
		}
		if got := route.Needs.String(); longest == "" || got != want[longest] {
			t.Errorf("%s needs %q, want %q", route.Pattern, got, want[longest])
		}
	}
}

// TestPermissions: without a permission, a page is 403, an action too, and no page has a
// button for it. Each of these keys lacks something else; TestNeeds and the test of
// [animalstore.Permissions.Allows] have all combinations.
func TestPermissions(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.Pet("Kim")
	refused := map[string]bool{}
	for _, has := range []animalstore.Permissions{
		animalstore.Write | animalstore.Admin, animalstore.Read | animalstore.Admin, animalstore.Read | animalstore.Write,
		animalstore.PetsWrite | animalstore.Admin, animalstore.OrdersWrite | animalstore.Admin, animalstore.PetsRead | animalstore.OrdersWrite,
	} {
		b := s.signedIn(has)
		wantOnlyAllowed(t, has.String()+": the overview", b.get("/console"), has)
		var targets [][2]string
		for _, route := range console.Routes() {
			method, path := s.target(route.Pattern)
			targets = append(targets, [2]string{method, path})
		}
		before := s.content()
		for i, route := range console.Routes() {
			method, path := targets[i][0], targets[i][1]
			what := has.String() + ": " + method + " " + path
			switch {
			case !has.Allows(route.Needs):
				refused[route.Pattern] = true
				b.do(method, path, nil).want(t, what, http.StatusForbidden, route.Needs.Names()[0], has.Names()[0])
			case method == http.MethodGet && !strings.HasSuffix(path, "/stream"): // which has no end: see TestStream
				p := b.get(path)
				absent := strings.HasPrefix(path, "/console/webhooks/") && p.status == http.StatusNotFound // there is none
				blind := has.Allows(animalstore.PetsWrite) && !has.Allows(animalstore.PetsRead)
				if !blind && p.status != http.StatusOK && !absent || p.status >= 500 {
					t.Errorf("%s: got %d, want 200\n%s", what, p.status, p.body)
				}
				wantOnlyAllowed(t, what, p, has)
			}
		}
		if after := s.content(); after != before {
			t.Errorf("%s: the store changed from\n%s\nto\n%s", has, before, after)
		}
	}
	for _, route := range console.Routes() {
		if route.Needs != 0 && !refused[route.Pattern] {
			t.Errorf("%s was refused to no key", route.Pattern)
		}
	}
}

var (
	pageLink   = regexp.MustCompile(`<a [^>]*href="(/console[^"?#]*)`)
	pictureOf  = regexp.MustCompile(`<img [^>]*src="(/console/photos[^"?#]*)`)
	searchForm = regexp.MustCompile(`<form[^>]*method="get"[^>]*action="([^"]*)"`)
	inPattern  = regexp.MustCompile(`\\{[a-z]+\\}`)
)

// routeOf matches the method and path of a page or an action.
type routeOf struct {
	*regexp.Regexp
	needs animalstore.Permissions
}

// routesOf are all of them. Longer paths than {id} are first.
var routesOf = sync.OnceValue(func() (all []routeOf) {
	for _, exact := range []bool{true, false} {
		for _, route := range console.Routes() {
			if strings.Contains(route.Pattern, "{") != exact {
				pattern := inPattern.ReplaceAllString(regexp.QuoteMeta(route.Pattern), "[^/]+")
				all = append(all, routeOf{regexp.MustCompile("^" + pattern + "$"), route.Needs})
			}
		}
	}
	return all
})

// needOf returns what a page or an action needs.
func needOf(method, path string) animalstore.Permissions {
	for _, route := range routesOf() {
		if route.MatchString(method + " " + path) {
			return route.needs
		}
	}
	return 0
}

// wantOnlyAllowed fails the test if a page links to, shows or offers what the key may not
// see or do.
func wantOnlyAllowed(t *testing.T, what string, p shown, has animalstore.Permissions) {
	t.Helper()
	for part, method := range map[*regexp.Regexp]string{actionForm: http.MethodPost, pageLink: http.MethodGet, pictureOf: http.MethodGet, searchForm: http.MethodGet} {
		for _, found := range part.FindAllStringSubmatch(p.body, -1) {
			if needs := needOf(method, found[1]); !has.Allows(needs) {
				t.Errorf("%s: got %s, want none without %s", what, found[0], needs)
			}
		}
	}
}

// content is everything in the store that the console can change, except sessions.
func (s *site) content() string {
	s.T.Helper()
	const most = 1000
	ctx := s.T.Context()
	pets, err := s.DB.Pets(ctx, animalstore.PetQuery{}, db.Page{Limit: most})
	orders, err2 := s.DB.Orders(ctx, animalstore.OrderQuery{}, db.Page{Limit: most})
	categories, err3 := s.DB.Categories(ctx, db.CategoryQuery{Limit: most})
	keys, err4 := s.DB.Keys(ctx, db.Page{Limit: most})
	webhooks, err5 := s.DB.Webhooks(ctx, db.Page{Limit: most})
	var ids []int64
	for _, pet := range pets {
		ids = append(ids, pet.ID)
	}
	photos, err6 := s.DB.Photos(ctx, animalstore.PhotoQuery{PetIDs: ids}, db.Page{Limit: most})
	if err := errors.Join(err, err2, err3, err4, err5, err6); err != nil {
		s.T.Fatal(err)
	}
	for i := range keys {
		keys[i].LastUsedAt = animalstore.Time{}
	}
	return fmt.Sprintf("%+v\n%+v\n%+v\n%+v\n%+v\n%+v\n", pets, orders, categories, keys, webhooks, photos)
}

// TestFirstPageForEveryKey: with any permissions, signing in leads to a page it may see.
func TestFirstPageForEveryKey(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.signedIn(animalstore.Read).get("/console").want(t, "read", http.StatusOK)
	s.signedIn(animalstore.PetsRead).get("/console").want(t, "pets:read", http.StatusOK)
	s.signedIn(animalstore.OrdersRead).get("/console").want(t, "orders:read", http.StatusOK)
	s.signedIn(animalstore.Admin).get("/console").wantMoved(t, "admin", "/console/keys")
	b := s.signedIn(animalstore.Write)
	b.get("/console").wantMoved(t, "write", "/console/pets/new")
	b.get("/console/pets/new").want(t, "write", http.StatusOK)
}

// TestEveryCallIsCharged: a page costs what its calls cost.
func TestEveryCallIsCharged(t *testing.T) {
	t.Parallel()
	s := start(t)
	secret, _ := s.Key("shop", everything, 1<<30)
	b := s.browser()
	b.signIn(secret)
	cost := func(path string, status int) int64 {
		t.Helper()
		before := s.left(secret)
		b.get(path).want(t, path, status)
		return before - s.left(secret) - 1
	}
	pet := fmt.Sprint("/console/pets/", s.Pet("Rex").ID)
	for path, want := range map[string]int64{
		"/console": 4, "/console/usage": 2, "/console/failures": 1, "/console/events": 2, "/console/events?type=pet.*": 3, "/console/pets": 3, pet: 4, pet + "/edit": 3, "/console/orders": 1, "/console/keys/1": 3,
	} {
		if got := cost(path, http.StatusOK); got != want {
			t.Errorf("%s: got %d requests charged, want %d", path, got, want)
		}
	}
	if got := cost("/console/nothing", http.StatusNotFound); got != 0 {
		t.Errorf("a page that doesn't exist: got %d requests charged, want none", got)
	}
}

// TestLimited: a page over the limit says why, and until when.
func TestLimited(t *testing.T) {
	t.Parallel()
	s := start(t)
	secret, id := s.Key("shop", everything, 4)
	b := s.browser()
	b.signIn(secret)
	b.get("/console").want(t, "within the limit", http.StatusOK)
	p := b.get("/console/pets?status=sold&category=1")
	p.want(t, "over the limit", http.StatusTooManyRequests, `href="/console/pets?status=sold&amp;category=1"`, `<time datetime="2026-11-15T12:01:00.000Z"`, `data-seconds="60"`)
	if got := p.header.Get("Retry-After"); got != "60" {
		t.Errorf("got Retry-After %q, want 60", got)
	}
	s.browser().signIn(secret).want(t, "signing in over the limit", http.StatusTooManyRequests)
	s.Advance(2 * time.Second)
	for range 100 {
		b.get("/console")
	}
	b.get("/console").want(t, "banned", http.StatusTooManyRequests, "banned", "<time")

	// The limits of the other key are its own, and it sees and lifts the ban.
	if err := s.Server.Save(t.Context()); err != nil {
		t.Fatal(err)
	}
	operator := s.signedIn(everything)
	operator.get("/console/keys").want(t, "the list", http.StatusOK, `<span class="tag banned">banned</span>`)
	path := fmt.Sprint("/console/keys/", id)
	key := operator.get(path)
	operator.post(path+"/unban", key.form(t, path+"/unban")).wantMoved(t, "unban", path).wantDone(t, "unbanned")
	operator.post(path+"/unban", key.form(t, path+"/unban")).wantMoved(t, "unban again", path).wantDone(t, "no-ban")
	s.Advance(time.Minute)
	b.get("/console").want(t, "after the ban was lifted", http.StatusOK)
}

// TestStrictPolicy: pages load only files of this server, which browsers keep, and
// nothing inline.
func TestStrictPolicy(t *testing.T) {
	t.Parallel()
	s := start(t)
	p := s.signedIn(everything).get("/console")
	files := regexp.MustCompile(`(?:href|src)="([^"]*\.(?:css|js|svg))"`).FindAllStringSubmatch(p.body, -1)
	if len(files) < 3 {
		t.Fatalf("got the files %q, want style sheets, scripts and an icon", files)
	}
	for _, file := range files {
		if got := s.browser().get(file[1]); got.status != http.StatusOK || !strings.Contains(got.header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s: got %d %v, want a file that browsers keep", file[1], got.status, got.header)
		}
	}
	for _, inline := range []string{"<style", " style=", "<script>", " onclick", "javascript:", "http://", "https://"} {
		if strings.Contains(p.body, inline) {
			t.Errorf("got %q on the page, want none", inline)
		}
	}
	if policy := p.header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
		t.Errorf("got the policy %q, want a strict one", policy)
	}
}

// TestWithoutConsole: a server can be without one, and then nothing leads to it.
func TestWithoutConsole(t *testing.T) {
	t.Parallel()
	without, with := start(t, func(c *server.Config) { c.NoConsole = true }).browser(), start(t).browser()
	without.get("/console").want(t, "the console", http.StatusNotFound, "route_not_found")
	for _, path := range []string{"/", "/docs/guides"} {
		with.get(path).want(t, path, http.StatusOK, `href="/console"`)
		if p := without.get(path); p.status != http.StatusOK || strings.Contains(p.body, `href="/console`) {
			t.Errorf("%s: got %d, want a page without a link to the console", path, p.status)
		}
	}
}

// TestWrongAddresses: an error page has the status and the menu.
func TestWrongAddresses(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(everything)
	for path, status := range map[string]int{
		"/console/nothing": 404, "/console/pets/7": 404, "/console/pets/x": 404, "/console/pets?status=gone": 400, "/console/events?type=pet": 400,
	} {
		b.get(path).want(t, path, status, `action="/console/sign-out"`, `<p class="code">`)
	}
}
