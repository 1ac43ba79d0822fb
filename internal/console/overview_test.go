package console_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"animalstore"
)

// order places an order for a pet.
func (s *site) order(petID int64) animalstore.Order {
	s.T.Helper()
	order, _, err := s.DB.PlaceOrder(s.T.Context(), animalstore.NewOrder{PetID: petID}, animalstore.At(s.Now()), nil)
	if err != nil {
		s.T.Fatal(err)
	}
	return order
}

// move changes the status of an order.
func (s *site) move(order animalstore.Order, to animalstore.OrderStatus) {
	s.T.Helper()
	change := func(o *animalstore.Order) error { return o.Move(to, animalstore.At(s.Now())) }
	if _, err := s.DB.UpdateOrder(s.T.Context(), order.ID, change); err != nil {
		s.T.Fatal(err)
	}
}

// TestOverview: it shows the stock, the orders that wait, the latest changes and the quota.
func TestOverview(t *testing.T) {
	t.Parallel()
	s := start(t)
	secret, _ := s.Key("clerk", animalstore.Read|animalstore.Write, 100)
	b := s.browser()
	b.signIn(secret)
	for i := range 8 {
		s.order(s.Pet(fmt.Sprint("placed ", i)).ID)
	}
	approved, delivered := s.order(s.Pet("approved").ID), s.order(s.Pet("delivered").ID)
	s.move(approved, animalstore.OrderApproved)
	s.move(delivered, animalstore.OrderApproved)
	s.move(delivered, animalstore.OrderDelivered)
	p := b.get("/console")
	p.want(t, "the overview", http.StatusOK,
		`<a class="card" href="/console/pets?status=available"><span class="figure">0</span>`, `<a class="card" href="/console/pets?status=pending"><span class="figure">9</span>`, `<a class="card" href="/console/pets?status=sold"><span class="figure">1</span>`,
		"<bdi>approved</bdi>", "<bdi>placed 7</bdi>", "<bdi>placed 3</bdi>", `href="/console/orders?status=placed">8 placed</a>`, `href="/console/orders?status=approved">1 approved</a>`, "Orders waiting: 9", `id="today" href="/console/events?since=2026-11-15"`)
	waiting, rest, _ := strings.Cut(p.body, `id="latest"`)
	if strings.Contains(waiting, "<bdi>delivered</bdi>") {
		t.Errorf("got a delivered order, want only those that wait:\n%s", waiting)
	}
	if want := fmt.Sprintf("%d of 100 requests left", s.left(secret)+1); !strings.Contains(rest, want) {
		t.Errorf("got no %q in\n%s", want, rest)
	}
	s.Pet("new")
	s.Advance(4 * time.Second)
	b.get("/console").want(t, "counted 4 seconds ago", http.StatusOK, `<span class="figure">0</span>`)
	s.Advance(7 * time.Second)
	b.get("/console").want(t, "counted again", http.StatusOK, `=available"><span class="figure">1</span>`)
	for i := range 91 {
		s.order(s.Pet(fmt.Sprint("more ", i)).ID)
	}
	b.get("/console").want(t, "100 wait", http.StatusOK, "Orders waiting: 100<")
	s.order(s.Pet("one more").ID)
	b.get("/console").want(t, "more wait", http.StatusOK, "Orders waiting: 100+<")
}

// TestToday: the feed can begin at a time, on all of its pages.
func TestToday(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // events have the time of the machine
		s := startInBubble(t)
		b := s.signedIn(everything)
		s.Pet("before")
		time.Sleep(time.Millisecond)
		begin := time.Now().UTC()
		path := "/console/events?since=" + begin.Format("2006-01-02T15:04:05.000Z")
		b.get(path).want(t, "nothing yet", http.StatusOK, `<time datetime="`+begin.Format("2006-01-02T15:04:05.000Z")+`"`)
		for i := range 60 { // more than a page
			s.Pet(fmt.Sprint("after ", i))
		}
		p := b.get(path)
		next := html.UnescapeString(regexpFind(t, p.body, `rel="next" href="([^"]+)">`))
		older := b.get(next)
		if got := strings.Count(p.body+older.body, "<bdi>after "); got != 60 || strings.Contains(older.body, "<bdi>before") {
			t.Errorf("got %d events after it, want 60 and none before:\n%s", got, older.body)
		}
		b.get("/console/events?since="+begin.Format(time.DateOnly)).want(t, "a date", http.StatusOK,
			`<time datetime="`+begin.Format(time.DateOnly)+`T00:00:00.000Z"`, "<bdi>after 59</bdi>")
		for _, since := range []string{"today", "2026-13-01", "2026-11-17 09:00"} {
			b.get("/console/events?since="+url.QueryEscape(since)).want(t, since, http.StatusBadRequest)
		}
	})
}

// TestTodayWithoutMatch: if nothing matches since then, the page says so, however many events
// there are before.
func TestTodayWithoutMatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startInBubble(t)
		b := s.signedIn(everything)
		for range 31 { // more than a page looks at
			batch := slices.Repeat([]animalstore.NewPet{{Name: "before", CategoryID: 1, Status: animalstore.PetAvailable}}, 100)
			if _, _, err := s.DB.CreatePets(t.Context(), batch, nil); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Minute)
		path := "/console/events?type=order.created&since=" + time.Now().UTC().Format("2006-01-02T15:04:05Z")
		if p := b.get(path); p.status != http.StatusOK || strings.Contains(p.body, "There are older events") {
			t.Errorf("got %d and a page that leads to older events, want none:\n%s", p.status, p.body)
		}
	})
}
