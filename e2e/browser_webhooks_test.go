//go:build linux

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"animalstore/client/webhook"
	"animalstore/internal/testenv"
)

// receiver receives webhooks and responds with a status that tests choose.
type receiver struct {
	*httptest.Server
	mu      sync.Mutex
	status  int
	secret  string
	got     []string // the bodies
	forgery error    // why the last one isn't genuine
}

func startReceiver(t *testing.T) *receiver {
	r := &receiver{status: http.StatusOK}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.got = append(r.got, string(body))
		r.forgery = webhook.Verify(r.secret, req.Header, body)
		w.WriteHeader(r.status)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) respond(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
}

// use makes the receiver expect signatures with this secret from now on.
func (r *receiver) use(secret string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.secret = secret
}

// count returns how many webhooks contained a text.
func (r *receiver) count(part string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Count(strings.Join(r.got, "\n"), part)
}

// wantLast checks the last webhook.
func (r *receiver) wantLast(t *testing.T, part string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.got) == 0 || !strings.Contains(r.got[len(r.got)-1], part) || r.forgery != nil {
		t.Errorf("the receiver got %q (%v), want %s at last, signed", r.got, r.forgery, part)
	}
}

// useWebhooks uses a webhook as people do: its secret is shown once, its deliveries are
// viewed and repeated, it is paused and resumed, and finally removed.
func (p *tab) useWebhooks(s *server) {
	p.t.Helper()
	r := startReceiver(p.t)
	addPet := func(name string) {
		p.t.Helper()
		wantStatus(p.t, newClient(p.t, s, s.ownerKey()).do(p.t, "POST", "/v1/pets", fmt.Sprintf(`{"name":%q,"categoryId":3}`, name)), 201, "")
	}
	takeSecret := func() string {
		p.t.Helper()
		secret := p.text("#secret")
		if copied := p.copied("figure .copy"); copied != secret || !strings.HasPrefix(secret, "whsec_") {
			p.t.Errorf("the button copies %q, want the secret %q", copied, secret)
		}
		r.use(secret)
		p.do("continue", click("main .primary"), visible("#deliveries"))
		if html := eval[string](p, `document.documentElement.outerHTML`); strings.Contains(html, secret) {
			p.t.Errorf("the page of the webhook shows the secret again")
		}
		return secret
	}

	p.open(s, "/console/webhooks", "#create")
	p.do("create", write("#url", r.URL+"/hook"), write("#types", "pet.created"), write("#description", "try"), click("main form .primary"), visible("#secret"))
	secret := takeSecret()
	path := strings.TrimPrefix(eval[string](p, `location.href`), s.url)
	awaitRow := func(what string, parts ...string) {
		p.t.Helper()
		testenv.Eventually(p.t, what, func() bool {
			p.open(s, path, "#deliveries")
			row := eval[string](p, `(document.querySelector(".rows tbody tr") || document.body).innerText`)
			return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(row, part) })
		})
	}

	p.do("ping", click(`form[action$="/ping"] button`), visible(".notice.done"))
	awaitRow("the ping is delivered", "delivered")
	r.wantLast(p.t, "webhook.ping")
	p.do("send it again", click(`tbody tr:first-child form button`), visible(".notice.done"))
	testenv.Eventually(p.t, "the ping comes again", func() bool { return r.count("webhook.ping") == 2 })

	r.respond(http.StatusInternalServerError)
	eval[string](p, `document.querySelector("#type").value = "pet.deleted"`)
	p.do("send a sample", click(`form[action$="/ping"] button`), visible(".notice.done"))
	awaitRow("the sample fails", "failed")
	p.do("see what was sent", click(`.rows td:first-child a`), visible("#body"))
	p.checkPage("delivery")
	if body := p.text("pre"); !strings.Contains(body, `"type": "pet.deleted"`) || !strings.Contains(body, "Sample pet") {
		p.t.Errorf("the page of the delivery shows %s, want the sample", body)
	}
	p.open(s, path, "#deliveries")
	p.do("ask", click(`.moves details:first-child summary`), visible(`form[action$="/retry-failed"] button`))
	p.do("send all failed again", click(`form[action$="/retry-failed"] button`), visible(".notice.done"))
	testenv.Eventually(p.t, "the sample comes again", func() bool { return r.count("pet.deleted") == 2 })
	addPet("Refused")
	awaitRow("an attempt fails", "pending", "500")
	p.checkPage("webhook-pending")
	p.do("show those", click(`.tabs [href$="?state=pending"]`), visible(`.tabs [href$="?state=pending"][aria-current]`), visible(".tag.pending"))
	r.respond(http.StatusOK)
	p.do("send it now", click(`tbody tr:first-child form button`), visible(".notice.done"))
	awaitRow("it is delivered", "delivered")
	r.wantLast(p.t, "Refused")
	p.do("rotate", write("#graceHours", "0"), click(`form[action$="/rotate"] button`), visible("#secret"))
	if takeSecret() == secret {
		p.t.Error("rotating shows the old secret")
	}
	p.do("pause", click(`form:has([name="state"]) button`), visible(".tag.paused"))
	addPet("Unheard")
	p.do("resume", click(`form:has([name="state"]) button`), visible(".tag.active"))
	addPet("Heard")
	testenv.Eventually(p.t, "the webhook delivers again", func() bool { return r.count("Heard") > 0 })
	if r.wantLast(p.t, "Heard"); r.count("Unheard") > 0 {
		p.t.Error("what happened while the webhook was paused was sent")
	}

	p.open(s, path, "#deliveries")
	p.do("remove", click(".danger summary"), click(`form[action$="/remove"] button`), visible(".notice.done"), visible("#create"))
	wantStatus(p.t, newClient(p.t, s, s.ownerKey()).get(p.t, strings.Replace(path, "/console", "/v1", 1)), 404, "webhook_not_found")
}
