package console_test

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/console"
)

// order places an order for a pet.
func (s *site) order(petID int64) animalstore.Order {
	s.t.Helper()
	order, _, err := s.db.PlaceOrder(s.t.Context(), petID, animalstore.At(s.clock()), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return order
}

// move changes the status of an order.
func (s *site) move(order animalstore.Order, to animalstore.OrderStatus) {
	s.t.Helper()
	change := func(o *animalstore.Order) error { return o.Move(to, animalstore.At(s.clock())) }
	if _, err := s.db.UpdateOrder(s.t.Context(), order.ID, change); err != nil {
		s.t.Fatal(err)
	}
}

// TestOverview: it begins with the store, and the key's quota is one line at its end.
func TestOverview(t *testing.T) {
	t.Parallel()
	s := start(t)
	secret, _ := s.key("clerk", animalstore.Read|animalstore.Write, 100)
	b := s.browser()
	b.signIn(secret)
	b.get("/console").want(t, "an empty store", http.StatusOK, `<span class="figure">0</span>`, "No orders are waiting for approval or delivery.", "Nothing has happened lately.")
	for i := range 8 {
		s.order(s.pet(fmt.Sprint("placed ", i)).ID)
	}
	approved, delivered := s.order(s.pet("approved").ID), s.order(s.pet("delivered").ID)
	s.move(approved, animalstore.OrderApproved)
	s.move(delivered, animalstore.OrderApproved)
	s.move(delivered, animalstore.OrderDelivered)
	s.advance(4 * time.Second)
	b.get("/console").want(t, "before pets are counted again", http.StatusOK, `<span class="figure">0</span>`, "Counted 4 seconds ago.")
	s.advance(7 * time.Second)
	p := b.get("/console")
	p.want(t, "the overview", http.StatusOK,
		`<a class="card" href="/console/pets?status=available"><span class="figure">0</span>`, `<a class="card" href="/console/pets?status=pending"><span class="figure">9</span>`, `<a class="card" href="/console/pets?status=sold"><span class="figure">1</span>`,
		"<bdi>approved</bdi>", `<span class="tag approved">`, "<bdi>placed 7</bdi>", "<bdi>placed 3</bdi>", `href="/console/pets/new">Add a pet</a>`, `id="today" href="/console/events?since=2026-11-15"`)
	p.want(t, "more orders", http.StatusOK, `<a href="/console/orders?status=placed">More orders that are placed</a>`)
	if strings.Contains(p.body, "More orders that are approved") {
		t.Errorf("there are said to be more approved orders, want none:\n%s", p.body)
	}
	waiting, rest, _ := strings.Cut(p.body, "Latest changes")
	for _, hidden := range []string{"<bdi>delivered</bdi>", "<bdi>placed 2</bdi>"} {
		if strings.Contains(waiting, hidden) {
			t.Errorf("an order that doesn't wait, or one too many, is shown: %s\n%s", hidden, waiting)
		}
	}
	for _, meter := range []string{"<meter", "Strikes", `class="plot"`} {
		if strings.Contains(p.body, meter) {
			t.Errorf("the overview has %q, want that on the page Usage", meter)
		}
	}
	left := s.left(secret) + 1
	if want := fmt.Sprintf("Your key has %d of 100 requests left until <time datetime=\"2026-11-15T12:01:00.000Z\">", left); !strings.Contains(rest, want) {
		t.Errorf("got no %q below the store in\n%s", want, rest)
	}
	b.get("/console/usage").want(t, "usage", http.StatusOK, "<h1>Usage</h1>", "Requests left this minute", "Strikes", `class="plot"`, `href="/console/usage?period=7d"`, `<li><a href="/console/usage" aria-current="page">Usage</a></li>`)
}

// TestToday: the feed can begin at a time, on all of its pages.
func TestToday(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(everything)
	for i := range 20 {
		s.pet(fmt.Sprint("before ", i))
	}
	begin := time.Now().UTC().Truncate(time.Millisecond).Add(time.Millisecond) // events have the time of the machine
	path := "/console/events?since=" + begin.Format("2006-01-02T15:04:05.000Z")
	for time.Now().Before(begin) {
	}
	b.get(path).want(t, "nothing yet", http.StatusOK, "Nothing has changed since then.", `Since <time datetime="`+begin.Format("2006-01-02T15:04:05.000Z")+`">`)
	for i := range 120 {
		s.pet(fmt.Sprint("after ", i))
	}
	seen := 0
	for p := b.get(path); ; {
		p.want(t, path, http.StatusOK, `<input type="hidden" name="since" value="`)
		seen += strings.Count(p.body, "<bdi>after ")
		if strings.Contains(p.body, "<bdi>before ") {
			t.Errorf("%s shows what happened before:\n%s", path, p.body)
		}
		older := pagerLink["next"].FindStringSubmatch(p.body)
		if older == nil {
			break
		}
		p = b.get(html.UnescapeString(older[1]))
	}
	if seen != 120 {
		t.Errorf("got %d events, want 120", seen)
	}
	b.get("/console/events?since="+begin.Format(time.DateOnly)).want(t, "a date", http.StatusOK, `Since <time datetime="`+begin.Format(time.DateOnly)+`T00:00:00.000Z">`, "<bdi>after 119</bdi>")
	for _, since := range []string{"today", "2026-13-01", "2026-11-17 09:00"} {
		b.get("/console/events?since="+url.QueryEscape(since)).want(t, since, http.StatusBadRequest, "Since must be a date such as 2026-11-17")
	}
}

// TestHistory: an order and a category show who changed them, by name. What only
// operators need, the id of a request, is on the page of all events alone.
func TestHistory(t *testing.T) {
	t.Parallel()
	s := start(t)
	admin := s.signedIn(everything)
	secret, _ := s.key("Zoë", animalstore.Read|animalstore.Write, 1<<30)
	clerk := s.browser()
	clerk.signIn(secret)
	s.pet("Rex")
	clerk.post("/console/orders", clerk.get("/console/pets/1").form(t, "/console/orders"))
	clerk.post("/console/categories/1", clerk.get("/console/categories/1").form(t, "/console/categories/1", "name", "Dogs"))
	for path, event := range map[string]string{"/console/orders/1": "order.created", "/console/categories/1": "category.updated", "/console": "order.created", "/console/pets/1": "pet.updated"} {
		for who, browser := range map[string]*browser{"an admin": admin, "the key itself": clerk} {
			p := browser.get(path)
			if got := p.by(t, event); !strings.Contains(got, "<bdi>Zoë</bdi>") {
				t.Errorf("%s, to %s: got %s, want the name of the key", path, who, got)
			}
			if strings.Contains(p.body, "</a> <small>") || strings.Contains(p.body, "</bdi> <small>") || strings.Contains(p.body, "data-requests") {
				t.Errorf("%s shows ids of requests to %s:\n%s", path, who, p.body)
			}
		}
	}
	admin.get("/console/events").want(t, "all events", http.StatusOK, "</a> <small>", " data-requests ")
}

// uncounted is a server that can't count its pets, and has none.
type uncounted struct{}

func (uncounted) ServeAPI(w http.ResponseWriter, r *http.Request, _ *[32]byte) {
	header := w.Header()
	header["X-RateLimit-Limit"], header["X-RateLimit-Remaining"], header["X-RateLimit-Reset"] = []string{"60"}, []string{"59"}, []string{"1794700800"}
	header.Set("Content-Type", "application/json")
	if r.URL.Path == "/v1/store/inventory" {
		header.Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, `{"code":"overloaded","message":"the server is busy","status":503}`)
		return
	}
	if r.URL.Query().Has("after") {
		header.Set("Link", `</v1/events?after=7>; rel="next"`)
	}
	fmt.Fprint(w, "[]")
}

func (uncounted) KeyOf(*http.Request, [32]byte) (*animalstore.Key, error) {
	return &animalstore.Key{ID: 1, Name: "clerk", Permissions: animalstore.Read}, nil
}

func (uncounted) ChargeAddress(*http.Request) (int64, error) { return 0, nil }

func (uncounted) IsHTTPS(*http.Request) bool { return false }

// signedIn is a store of sessions in which everybody is signed in.
type signedIn struct{ console.Sessions }

func (signedIn) FindSession(context.Context, [32]byte, time.Time) ([32]byte, bool, error) {
	return [32]byte{}, true, nil
}

// TestUncounted: a store that is too busy to count its pets still shows everything else.
func TestUncounted(t *testing.T) {
	t.Parallel()
	c := console.New(console.Config{Environment: animalstore.Production, Assets: "/assets/", Now: time.Now, Server: uncounted{}, Sessions: signedIn{}})
	r := httptest.NewRequest(http.MethodGet, "/console", nil)
	r.AddCookie(&http.Cookie{Name: "animalstore_session", Value: "any"})
	w := httptest.NewRecorder()
	c.ServeHTTP(w, r)
	p := shown{w.Code, w.Header(), w.Body.String()}
	p.want(t, "the overview", http.StatusOK, `<span class="figure">?</span>`, "couldn’t be counted in time", "No orders are waiting", "59 of 60 requests left")
}
