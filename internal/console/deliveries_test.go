package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
)

// states returns the states of the deliveries of webhook 1, newest first.
func (s *site) states() (states []animalstore.DeliveryState) {
	s.t.Helper()
	all, err := s.db.Deliveries(s.t.Context(), db.DeliveryQuery{WebhookID: 1, Limit: 100})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, one := range all {
		states = append(states, one.State)
	}
	return states
}

// attempt ends what is due with a status.
func (s *site) attempt(status int) {
	s.t.Helper()
	now := animalstore.At(s.clock())
	due, err := s.db.ClaimDeliveries(s.t.Context(), now, animalstore.At(now.Add(time.Minute)))
	if err != nil || len(due) == 0 {
		s.t.Fatalf("claimed %d, %v", len(due), err)
	}
	for _, d := range due {
		a := animalstore.Attempt{Time: now, Status: &status, DurationMs: 1234}
		if _, _, err := s.db.FinishDelivery(s.t.Context(), d.Result(a, 0, 0), now, animalstore.Time{}); err != nil {
			s.t.Fatal(err)
		}
	}
}

// TestDeliveries: a delivery's page shows what is sent, a test event has the type that was
// chosen, and many deliveries are sent again with one form.
func TestDeliveries(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.webhook()
	b := s.signedIn(everything)
	const path = "/console/webhooks/1"
	page := b.get(path)
	b.post(path+"/ping", page.form(t, path+"/ping", "type", "pet.updated")).wantMoved(t, "a test event", path).wantDone(t, "pinged")
	b.post(path+"/ping", b.get(path).form(t, path+"/ping", "type", "pet.sold")).want(t, "a wrong type", http.StatusBadRequest)
	b.get(path).want(t, "the webhook", http.StatusOK, `href="`+path+`/deliveries/1">1</a>`, "pet.updated")
	delivery := b.get(path + "/deliveries/1")
	delivery.want(t, "the delivery", http.StatusOK, "pet.updated", "Sample pet", `href="`+path+`"`)
	s.attempt(500)
	b.get(path+"/deliveries/1").want(t, "the failed delivery", http.StatusOK, "HTTP 500", "1,234 ms")
	for _, wrong := range []string{"/deliveries/2", "/deliveries/x", "/deliveries/retry-since"} {
		b.get(path+wrong).want(t, wrong, http.StatusNotFound)
	}
	b.post(path+"/deliveries/1/retry", delivery.form(t, path+"/deliveries/1/retry")).wantMoved(t, "retry", path).wantDone(t, "retried")

	const failed, since = path + "/deliveries/retry-failed", path + "/deliveries/retry-since"
	page = b.get(path)
	b.post(failed, page.form(t, failed)).wantMoved(t, "none failed", path).wantDone(t, "retried-0")
	b.post(path+"/ping", page.form(t, path+"/ping")).wantMoved(t, "a ping", path).wantDone(t, "pinged")
	s.attempt(500)
	form := b.get(path).form(t, failed)
	b.post(failed, form).wantMoved(t, "all failed", path).wantDone(t, "retried-2")
	s.attempt(204)
	b.post(failed, form).wantMoved(t, "the same form", path).wantDone(t, "unchanged")
	for range 2 { // the second time, they are due already
		aMinuteAgo := s.clock().Add(-time.Minute).UTC().Format("2006-01-02T15:04:05")
		b.post(since, b.get(path).form(t, since, "since", aMinuteAgo)).wantMoved(t, "everything", path).wantDone(t, "retried-2")
	}
	if got := s.states(); len(got) != 2 || got[0] != animalstore.DeliveryPending || got[1] != animalstore.DeliveryPending {
		t.Errorf("got %q, want both pending", got)
	}
	future := b.post(since, b.get(path).form(t, since, "since", "2999-12-31T23:59"))
	future.want(t, "the future", http.StatusBadRequest, "<details open>", `value="2999-12-31T23:59"`)
	s.pet("</code><script>alert(1)</script>")
	if _, err := s.db.PublishEvents(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.db.DispatchEvents(t.Context(), animalstore.At(s.clock()), 100); err != nil {
		t.Fatal(err)
	}
	if p := b.get(path + "/deliveries/3"); !strings.Contains(p.body, "&lt;/code&gt;") || strings.Contains(p.body, "<script>alert") {
		t.Errorf("got %d, want the name as text:\n%s", p.status, p.body)
	}
}
