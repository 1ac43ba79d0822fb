package console_test

import (
	"net/http"
	"slices"
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
	secret := regexpFind(t, created.body, `(whsec_[^<]*)`)
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
	page = b.get(path)
	rotated := b.post(path+"/rotate", page.form(t, path+"/rotate"))
	rotated.want(t, "rotate", http.StatusOK, "whsec_")
	for range 2 {
		b.post(path+"/remove", page.form(t, path+"/remove")).wantMoved(t, "remove", "/console/webhooks").wantDone(t, "removed")
	}
	b.get(path).want(t, "removed", http.StatusNotFound)
}

// TestTypesOfAWebhook: types are chosen from a list.
func TestTypesOfAWebhook(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(everything)
	form := b.get("/console/webhooks").form(t, "/console/webhooks", "url", "https://192.0.2.1/")
	form.Del("types")
	b.post("/console/webhooks", form).want(t, "no type", http.StatusBadRequest, `class="types" tabindex="-1" aria-invalid="true"`)
	form["types"] = []string{"pet.*", "pet.created", "order.created"}
	b.post("/console/webhooks", form).want(t, "create", http.StatusOK)
	page := b.get("/console/webhooks/1")
	if got := page.form(t, "/console/webhooks/1")["types"]; !slices.Equal(got, []string{"pet.*", "order.created"}) {
		t.Errorf("got %q chosen, want those that were, without what pet.* includes", got)
	}
	form = page.form(t, "/console/webhooks/1")
	form.Del("types")
	b.post("/console/webhooks/1", form).want(t, "no type", http.StatusBadRequest, `aria-invalid="true"`)
}
