package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
)

// TestPingSamples: a ping of any type contains a valid resource of that type, with an id
// that no store has.
func TestPingSamples(t *testing.T) {
	schemas := map[string]string{"pet": "Pet", "order": "Order", "photo": "Photo", "category": "Category", "key": "Key", "webhook": "Webhook"}
	for _, eventType := range animalstore.EventTypes {
		data := []byte(db.PingData(eventType, animalstore.At(time.Now())))
		if err := checkBody(data, responseDocument().Components.Schemas[schemas[eventType.Resource()]].Value); err != nil {
			t.Errorf("%s: got %s: %v", eventType, data, err)
		}
		var resource struct{ ID int64 }
		if err := json.Unmarshal(data, &resource); err != nil || resource.ID != 999_999_999_999 {
			t.Errorf("%s: got the id %d, %v, want 999999999999", eventType, resource.ID, err)
		}
	}
}

// TestPing: a ping has the type that the request names.
func TestPing(t *testing.T) {
	s := start(t)
	path := fmt.Sprint("/v1/webhooks/", s.addWebhook(t).ID)
	for body, eventType := range map[string]string{"": "webhook.ping", `{"unknown":1}`: "webhook.ping", `{"type":"webhook.ping"}`: "webhook.ping", `{"type":"key.revoked"}`: "key.revoked"} {
		got := s.do(t, call{method: "POST", path: path + "/ping", key: s.admin, body: body})
		got.want(t, http.StatusAccepted, "")
		if !strings.Contains(string(got.body), `"type":"`+eventType+`"`) {
			t.Errorf("%s: got %s, want a ping of type %s", body, got.body, eventType)
		}
	}
}

// TestRetryDeliveries: a request chooses deliveries by state and time, and the response has
// their number.
func TestRetryDeliveries(t *testing.T) {
	s := start(t)
	webhook := s.addWebhook(t)
	begin := s.clock.Now()
	for range 2 {
		if _, err := s.db.DB.PingWebhook(t.Context(), webhook.ID, animalstore.PetCreated, animalstore.At(s.clock.Now())); err != nil {
			t.Fatal(err)
		}
		s.clock.advance(time.Hour)
	}
	halfPast := begin.Add(30 * time.Minute)
	for body, want := range map[string]int{
		`{"state":"pending","unknown":null}`: 2,
		`{"state":"failed"}`:                 0,
		`{"since":"1999-12-31T23:59:59Z"}`:   2,
		`{"state":"pending","since":"` + halfPast.In(time.FixedZone("", -3600)).Format(time.RFC3339) + `"}`: 1,
		`{"since":"` + animalstore.At(s.clock.Now()).String() + `"}`:                                        0,
	} {
		got := s.do(t, call{method: "POST", path: fmt.Sprintf("/v1/webhooks/%d/deliveries/retry", webhook.ID), key: s.admin, body: body})
		got.want(t, http.StatusAccepted, "")
		if want := fmt.Sprintf(`{"deliveries":%d}`, want); strings.TrimSpace(string(got.body)) != want {
			t.Errorf("%s: got %s, want %s", body, got.body, want)
		}
	}
}

// addFailedPings adds deliveries to a webhook that failed, and returns a function that
// makes another one fail.
func (s *service) addFailedPings(t *testing.T, webhookID int64, n int) (failAnother func()) {
	t.Helper()
	now, status := animalstore.At(s.clock.Now()), 500
	lease := animalstore.At(now.Add(time.Hour))
	for range n + 1 {
		if _, err := s.db.DB.PingWebhook(t.Context(), webhookID, animalstore.WebhookPing, now); err != nil {
			t.Fatal(err)
		}
	}
	due, err := s.db.DB.ClaimDeliveries(t.Context(), now, lease)
	if err != nil {
		t.Fatal(err)
	}
	finish := func() {
		t.Helper()
		result := due[0].Result(animalstore.Attempt{Time: now, Status: &status}, 0, 0)
		next, _, err := s.db.DB.FinishDelivery(t.Context(), result, now, lease)
		if err != nil {
			t.Fatal(err)
		}
		if due = due[1:]; next != nil {
			due = append(due, *next)
		}
	}
	for len(due) > 1 {
		finish()
	}
	return finish
}

// TestRetryOutOfTime: a request that runs out of time says how many deliveries are due.
// Repeated soon, it continues, and its response counts all of them.
func TestRetryOutOfTime(t *testing.T) {
	s := start(t)
	steps := 0 // transactions of a request: the second fails
	s.db.arm("RetryDeliveries", func(context.Context) error {
		if steps++; steps == 2 {
			return context.DeadlineExceeded
		}
		return nil
	})
	const all = db.MaxRetried + 2
	for _, body := range []string{`{"state":"failed"}`, `{"since":"2026-11-15T00:00:00.000Z"}`} {
		webhook := s.addWebhook(t)
		failAnother := s.addFailedPings(t, webhook.ID, all-1)
		retry := func(firstStep int) response {
			steps = firstStep
			return s.do(t, call{method: "POST", path: fmt.Sprintf("/v1/webhooks/%d/deliveries/retry", webhook.ID), key: s.admin, body: body})
		}
		wantRetried := func(when string, got response, deliveries, lastStep int) {
			t.Helper()
			if n := read[animalstore.RetriedDeliveries](t, got, http.StatusAccepted).Deliveries; n != deliveries || steps != lastStep {
				t.Errorf("%s, %s: got %d deliveries, step %d, want %d, step %d", body, when, n, steps, deliveries, lastStep)
			}
		}
		wantRefused := func() {
			t.Helper()
			refused := retry(0)
			refused.want(t, http.StatusServiceUnavailable, animalstore.Unavailable)
			refused.wantMessage(t, "500 deliveries are due")
		}
		wantRefused()
		failAnother()
		wantRetried("repeated", retry(2), all, 3)
		if strings.Contains(body, "failed") { // what is due doesn't match any more
			wantRetried("a new request", retry(2), 0, 3)
			continue
		}
		wantRetried("a new request", retry(2), all, 4)
		wantRefused()
		s.clock.advance(time.Hour)
		wantRetried("an hour later", retry(2), all, 4)
	}
}

// TestRetryFailsLater: a bulk retry says that it can be continued only if that helps. After
// other errors it continues all the same.
func TestRetryFailsLater(t *testing.T) {
	s := start(t)
	webhook := s.addWebhook(t)
	s.addFailedPings(t, webhook.ID, db.MaxRetried+1)
	for _, test := range []struct {
		err    error
		status int
		code   animalstore.Code
	}{
		{fmt.Errorf("commit: %w", db.ErrOutcomeUnknown), http.StatusServiceUnavailable, animalstore.Unavailable},
		{fmt.Errorf("connect: %w", db.ErrUnavailable), http.StatusServiceUnavailable, animalstore.Unavailable},
		{fmt.Errorf("insert: %w", db.ErrFull), http.StatusServiceUnavailable, animalstore.StorageFull},
		{errors.New(secretDetail), http.StatusInternalServerError, animalstore.InternalError},
	} {
		steps := 0 // transactions: the second fails
		s.db.arm("RetryDeliveries", func(context.Context) error {
			if steps++; steps == 2 {
				return test.err
			}
			return nil
		})
		c := call{method: "POST", path: fmt.Sprintf("/v1/webhooks/%d/deliveries/retry", webhook.ID), key: s.admin, body: `{"since":"2026-11-15T00:00:00.000Z"}`}
		refused := s.do(t, c)
		refused.want(t, test.status, test.code)
		if got, want := strings.Contains(string(refused.body), "500 deliveries are due"), test.code == animalstore.Unavailable; got != want {
			t.Errorf("%v: got %s, which says how to continue: %t, want %t", test.err, refused.body, got, want)
		}
		if n := read[animalstore.RetriedDeliveries](t, s.do(t, c), http.StatusAccepted).Deliveries; n != db.MaxRetried+2 || steps != 3 {
			t.Errorf("repeated after %v: got %d deliveries, step %d, want all, step 3", test.err, n, steps)
		}
	}
}
