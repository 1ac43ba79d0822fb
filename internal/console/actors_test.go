package console_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"animalstore"
	"animalstore/internal/db"
)

// by is what the row of an event, or its entry in a history, says about who made the change.
func (p shown) by(t *testing.T, event string) string {
	t.Helper()
	_, row, _ := strings.Cut(p.body, `title="`+event+`"`)
	_, by, found := strings.Cut(row, "</time>")
	by = strings.TrimPrefix(strings.TrimPrefix(by, "</td><td>"), ", ")
	for _, end := range []string{"</td>", "</p>", " <small>"} {
		by, _, _ = strings.Cut(by, end)
	}
	if !found || by == "" {
		t.Fatalf("no row of %s says who made it:\n%s", event, p.body)
	}
	return by
}

// TestActors: who made a change, by name for admins and for the key itself.
func TestActors(t *testing.T) {
	t.Parallel()
	s := start(t)
	admin, reader := s.signedIn(everything), s.signedIn(animalstore.Read)
	secret, clerkID := s.Key(`clerk "<i>"`, animalstore.Read|animalstore.Write, 1<<30)
	clerk := s.browser()
	clerk.signIn(secret)
	s.category(7, "dogs")
	form := clerk.get("/console/pets/new").form(t, "/console/pets", "name", "Rex", "category", "dogs")
	clerk.post("/console/pets", form)
	clerk.post("/console/orders", clerk.get("/console/pets/1").form(t, "/console/orders"))
	s.webhook()
	ban := db.LimitState{BannedAt: 1, BannedUntil: 2, BanLevel: 1}
	if err := s.DB.SaveLimitStates(t.Context(), []db.KeyLimitState{{KeyID: clerkID, LimitState: ban}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.DB.UpdateWebhook(db.WithOrigin(t.Context(), db.Service), 1, func(w *animalstore.Webhook) error { w.State = animalstore.WebhookDisabled; return nil }); err != nil {
		t.Fatal(err)
	}
	admin.post("/console/webhooks/1", admin.get("/console/webhooks/1").form(t, "/console/webhooks/1", "description", "for the shop"))

	name := "<bdi>clerk &#34;&lt;i&gt;&#34;</bdi>"
	linked := fmt.Sprintf(`<a href="/console/keys/%d">%s</a>`, clerkID, name)
	own := `<a href="/console/keys/1"><bdi>read,write,admin</bdi></a>`
	for _, test := range []struct {
		who        *browser
		path, want string
		event      string
	}{
		{admin, "/console/events", linked, "pet.created"},
		{admin, "/console/events", "<bdi>the service</bdi>", "key.banned"},
		{admin, "/console/events", "<bdi>the service</bdi>", "webhook.disabled"},
		{admin, "/console/events", "<bdi>command line</bdi>", "webhook.created"},
		{admin, "/console/events", own, "webhook.updated"},
		{admin, "/console", linked, "order.created"},
		{admin, "/console/pets/1", linked, "pet.created"},
		{admin, "/console/orders/1", linked, "order.created"},
		{admin, "/console/categories/7", "<bdi>command line</bdi>", "category.updated"},
		{admin, "/console/webhooks/1", "<bdi>the service</bdi>", "webhook.disabled"},
		{clerk, "/console/events", name, "pet.created"},
		{clerk, "/console/pets/1", name, "pet.created"},
		{reader, "/console/events", "<bdi>another key</bdi>", "pet.created"},
	} {
		p := test.who.get(test.path)
		p.want(t, test.path, http.StatusOK)
		if got := p.by(t, test.event); got != test.want {
			t.Errorf("%s, %s: got %s, want %s", test.path, test.event, got, test.want)
		}
	}
}
