package console_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/server"
)

// states returns the states of the deliveries of webhook 1, newest first.
func (s *site) states() (states []animalstore.DeliveryState) {
	s.T.Helper()
	all, err := s.DB.Deliveries(s.T.Context(), 1, animalstore.DeliveryQuery{}, db.Page{Limit: 100})
	if err != nil {
		s.T.Fatal(err)
	}
	for _, one := range all {
		states = append(states, one.State)
	}
	return states
}

// attempt ends what is due with a status.
func (s *site) attempt(status int) {
	s.T.Helper()
	now := animalstore.At(s.Now())
	due, err := s.DB.ClaimDeliveries(s.T.Context(), now, animalstore.At(now.Add(time.Minute)))
	if err != nil || len(due) == 0 {
		s.T.Fatalf("claimed %d, %v", len(due), err)
	}
	for _, d := range due {
		a := animalstore.Attempt{Time: now, Status: &status, DurationMs: 1234}
		if _, _, err := s.DB.FinishDelivery(s.T.Context(), d.Result(a, 0, 0), now, animalstore.Time{}); err != nil {
			s.T.Fatal(err)
		}
	}
}

// TestDeliveries: a delivery's page shows what is sent, a test event has the type that was
// chosen, a webhook is shown as failing while its last attempt failed, and many deliveries
// are sent again with one form.
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
	wantFailing := func(want bool) {
		t.Helper()
		for _, page := range []string{"/console/webhooks", path} {
			if got := strings.Contains(b.get(page).body, ">failing<"); got != want {
				t.Errorf("%s: shown as failing: %t, want %t", page, got, want)
			}
		}
	}
	wantFailing(true)
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
	wantFailing(false)
	b.post(failed, form).wantMoved(t, "the same form", path).wantDone(t, "unchanged")
	for range 2 { // the second time, they are due already
		aMinuteAgo := s.Now().Add(-time.Minute).UTC().Format("2006-01-02T15:04:05")
		b.post(since, b.get(path).form(t, since, "since", aMinuteAgo)).wantMoved(t, "everything", path).wantDone(t, "retried-2")
	}
	if got := s.states(); len(got) != 2 || got[0] != animalstore.DeliveryPending || got[1] != animalstore.DeliveryPending {
		t.Errorf("got %q, want both pending", got)
	}
	future := b.post(since, b.get(path).form(t, since, "since", "2999-12-31T23:59"))
	future.want(t, "the future", http.StatusBadRequest, "<details open>", `value="2999-12-31T23:59"`)
	s.Pet("</code><script>alert(1)</script>")
	if _, err := s.DB.PublishEvents(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.DB.DispatchEvents(t.Context(), animalstore.At(s.Now()), 100); err != nil {
		t.Fatal(err)
	}
	if p := b.get(path + "/deliveries/3"); !strings.Contains(p.body, "&lt;/code&gt;") || strings.Contains(p.body, "<script>alert") {
		t.Errorf("got %d, want the name as text:\n%s", p.status, p.body)
	}
}

// slowRetries is a database in which a bulk retry runs out of time: before its first batch
// of 500, and then after each, until there is enough time.
type slowRetries struct {
	db.DB
	batches []int64 // what each was before
	enough  bool
}

func (d *slowRetries) RetryDeliveries(_ context.Context, q db.RetryQuery, _ animalstore.Time) (retried int, next int64, err error) {
	d.batches = append(d.batches, q.Before)
	switch {
	case d.enough:
		return 2, 0, nil
	case len(d.batches)%2 == 1:
		return 0, 0, context.DeadlineExceeded
	}
	return db.MaxRetried, 1000 - int64(len(d.batches)), nil
}

// TestRetryOutOfTime: a bulk retry that runs out of time says how much is done. Sent again
// from that page, the form continues, as often as it takes.
func TestRetryOutOfTime(t *testing.T) {
	t.Parallel()
	var slow *slowRetries
	s := start(t, func(c *server.Config) {
		c.Hooks.WrapDB = func(d db.DB) db.DB { slow = &slowRetries{DB: d}; return slow }
	})
	s.webhook()
	b := s.signedIn(everything)
	const path = "/console/webhooks/1"
	for action, want := range map[string][]int64{
		path + "/deliveries/retry-since":  {0, 0, 998, 998, 996, 996},
		path + "/deliveries/retry-failed": {0, 0, 998, 0, 996, 0}, // what is due isn't failed any more
	} {
		slow.batches, slow.enough = nil, false
		form := b.get(path).form(t, action)
		if form.Has("since") {
			form.Set("since", "2026-11-15T09:00:00")
		}
		for _, due := range []string{"overloaded", "500 deliveries are due", "1000 deliveries are due"} {
			page := b.post(action, form)
			page.want(t, action, http.StatusServiceUnavailable, due, "not be finished", "What you typed is kept")
			if strings.Contains(page.body, "takes effect once") {
				t.Errorf("%s: the page says that the form takes effect once:\n%s", action, page.body)
			}
			form = page.form(t, action)
		}
		slow.enough = true
		b.post(action, form).wantMoved(t, "the rest", path).wantDone(t, "retried-1002")
		b.post(action, form).wantMoved(t, "the same form", path).wantDone(t, "unchanged")
		if !slices.Equal(slow.batches, want) {
			t.Errorf("%s: got batches before %v, want %v", action, slow.batches, want)
		}
	}
}
