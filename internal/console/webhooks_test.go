package console_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// TestWebhooks: a webhook's life, by forms alone. TestDeliveries has what it sends.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(everything)
	list := b.get("/console/webhooks")
	form := list.form(t, "/console/webhooks", "url", "https://192.0.2.1/<hook>", "types", "pet.created", "description", "<b>shop</b>")
	created := b.post("/console/webhooks", form)
	b.post("/console/webhooks", form).want(t, "create again", http.StatusConflict)
	secret := regexp.MustCompile(`whsec_[^<]*`).FindString(created.body)
	if secret == "" {
		t.Fatalf("got no secret in\n%s", created.body)
	}
	const path = "/console/webhooks/1"
	page := b.get(path)
	page.want(t, "the webhook", http.StatusOK, "&lt;b&gt;shop&lt;/b&gt;")
	for _, p := range []shown{page, b.get("/console/webhooks")} {
		if strings.Contains(p.body, secret) {
			t.Error("the page shows the secret again")
		}
		if strings.Contains(p.body, "<b>shop") || strings.Contains(p.body, "<hook>") {
			t.Errorf("the page has the description or the URL as markup:\n%s", p.body)
		}
	}
	b.post(path, map[string][]string{"state": {"paused"}}).wantMoved(t, "pause", path).wantDone(t, "saved")
	page = b.get(path)
	page.want(t, "paused", http.StatusOK, `<span class="tag paused">`)
	b.post(path, page.form(t, path, "description", "mine")).wantMoved(t, "change", path).wantDone(t, "saved")
	stale := b.post(path, page.form(t, path, "description", "other"))
	stale.want(t, "a stale change", http.StatusPreconditionFailed, "<bdi>other</bdi>", "<bdi>mine</bdi>")
	b.post(path+"/rotate", page.form(t, path+"/rotate")).want(t, "a stale rotation", http.StatusPreconditionFailed)
	page = b.get(path)
	rotated := b.post(path+"/rotate", page.form(t, path+"/rotate"))
	rotated.want(t, "rotate", http.StatusOK, "whsec_")
	if strings.Contains(rotated.body, secret) {
		t.Error("the rotated secret is the old one")
	}
	for range 2 {
		b.post(path+"/remove", page.form(t, path+"/remove")).wantMoved(t, "remove", "/console/webhooks").wantDone(t, "removed")
	}
	b.get(path).want(t, "removed", http.StatusNotFound)
}
