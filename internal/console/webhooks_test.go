package console_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"animalstore/internal/server"
)

// TestWebhooks: a webhook's life, by forms alone.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	var got atomic.Int64
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { got.Add(1) }))
	t.Cleanup(receiver.Close)
	s := start(t, func(c *server.Config) {
		c.WebhookNetworks = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		c.Hooks = server.Hooks{}
	})
	b := s.signedIn(everything)
	list := b.get("/console/webhooks")
	list.want(t, "none", http.StatusOK, "Events aren’t sent anywhere yet.", "pet.*, order.*, category.*")
	b.post("/console/webhooks", list.form(t, "/console/webhooks", "url", "ftp://nowhere")).want(t, "a wrong URL", http.StatusBadRequest, `role="alert"`, "ftp://nowhere")
	list = b.get("/console/webhooks")
	form := list.form(t, "/console/webhooks", "url", receiver.URL+"/<hook>", "types", "pet.created", "description", "<b>shop</b>")
	created := b.follow(b.post("/console/webhooks", form))
	created.want(t, "create", http.StatusOK, "whsec_", "shown only this once")
	b.post("/console/webhooks", form).want(t, "create again", http.StatusConflict, "sent before")
	id := regexpFind(t, created.body, `href="(/console/webhooks/\d+)"`)
	secret := regexp.MustCompile(`whsec_[^<]*`).FindString(created.body)
	page := b.get(id)
	page.want(t, "the webhook", http.StatusOK, "Nothing has been sent yet.", "Pause", "&lt;b&gt;shop&lt;/b&gt;")
	for _, p := range []shown{page, b.get("/console/webhooks")} {
		if strings.Contains(p.body, secret) {
			t.Error("the page shows the secret again")
		}
		if strings.Contains(p.body, "<b>shop") || strings.Contains(p.body, "<hook>") {
			t.Errorf("the page has the description or the URL as markup:\n%s", p.body)
		}
	}

	ping := page.form(t, id+"/ping")
	for range 2 { // the second time does nothing
		if p := b.post(id+"/ping", ping); p.status != http.StatusSeeOther {
			t.Errorf("ping: got %d\n%s", p.status, p.body)
		}
	}
	s.pet("Rex")
	deadline := time.Now().Add(time.Minute)
	for strings.Count(page.body, `<span class="tag delivered">`) < 2 && time.Now().Before(deadline) {
		time.Sleep(20 * time.Millisecond)
		page = b.get(id)
	}
	page.want(t, "the deliveries", http.StatusOK, "webhook.ping", "pet.created", "200", "Send again")
	if n := got.Load(); n != 2 {
		t.Errorf("the receiver got %d requests, want a ping and a pet", n)
	}
	retry := regexpFind(t, page.body, `action="(`+id+`/deliveries/\d+/retry)"`)
	again := page.form(t, retry)
	b.post(retry, again).wantMoved(t, "retry", id).wantDone(t, "retried")
	for got.Load() < 3 && time.Now().Before(deadline) {
		time.Sleep(20 * time.Millisecond)
	}
	b.post(retry, again).wantMoved(t, "the same retry", id).wantDone(t, "unchanged")
	if n := got.Load(); n != 3 {
		t.Errorf("after a retry, the receiver got %d requests, want 3", n)
	}

	b.post(id, map[string][]string{"state": {"paused"}}).wantMoved(t, "pause", id).wantDone(t, "saved")
	page = b.get(id)
	page.want(t, "paused", http.StatusOK, `<span class="tag paused">`, "Activate")
	b.post(id, page.form(t, id, "description", "mine")).wantMoved(t, "change", id).wantDone(t, "saved")
	stale := b.post(id, page.form(t, id, "description", "other"))
	stale.want(t, "a stale change", http.StatusPreconditionFailed, "<bdi>other</bdi>", "<bdi>mine</bdi>")
	b.post(id+"/rotate", page.form(t, id+"/rotate")).want(t, "a stale rotation", http.StatusPreconditionFailed)
	page = b.get(id)
	rotated := b.follow(b.post(id+"/rotate", page.form(t, id+"/rotate")))
	rotated.want(t, "rotate", http.StatusOK, "whsec_", "1 day")
	if strings.Contains(rotated.body, secret) {
		t.Error("the rotated secret is the old one")
	}
	b.post(id+"/remove", page.form(t, id+"/remove")).wantMoved(t, "remove", "/console/webhooks").wantDone(t, "removed")
	b.post(id+"/remove", page.form(t, id+"/remove")).wantMoved(t, "remove again", "/console/webhooks").wantDone(t, "removed")
	b.get(id).want(t, "removed", http.StatusNotFound)
	b.post(fmt.Sprint(id, "/deliveries/x/retry"), nil).want(t, "a wrong delivery", http.StatusNotFound)
}
