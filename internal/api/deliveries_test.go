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
		s.clock.Advance(time.Hour)
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

// TestRetryContinues: a request that fails between two transactions is continued by the same
// request, whose response counts all deliveries. If repeating it helps, the error says so and
// how many are due.
func TestRetryContinues(t *testing.T) {
	s := start(t)
	webhook := s.addWebhook(t)
	const all = db.MaxRetried + 2
	for range all - 1 {
		s.answerPing(t, webhook.ID, http.StatusInternalServerError)
	}
	transactions, failure := 0, error(nil) // of the second transaction
	s.db.arm("RetryDeliveries", func(context.Context) error {
		if transactions++; transactions == 2 {
			return failure
		}
		return nil
	})
	retry := func(body string, err error) response {
		transactions, failure = 0, err
		return s.asAdmin(t, "POST", fmt.Sprintf("/v1/webhooks/%d/deliveries/retry", webhook.ID), body)
	}
	wantRetried := func(when, body string, deliveries, wantTransactions int) {
		t.Helper()
		got := read[animalstore.RetriedDeliveries](t, retry(body, nil), http.StatusAccepted).Deliveries
		if got != deliveries || transactions != wantTransactions {
			t.Errorf("%s, %s: got %d deliveries in %d transactions, want %d in %d", body, when, got, transactions, deliveries, wantTransactions)
		}
	}
	const failed, since = `{"state":"failed"}`, `{"since":"2026-11-15T00:00:00.000Z"}`
	retry(failed, context.DeadlineExceeded).want(t, http.StatusServiceUnavailable, animalstore.Unavailable)
	s.answerPing(t, webhook.ID, http.StatusInternalServerError)
	wantRetried("repeated", failed, all, 1)
	wantRetried("a new request", failed, 0, 1) // what is due doesn't match any more
	for _, test := range []struct {
		err    error
		status int
		code   animalstore.Code
	}{
		{context.DeadlineExceeded, http.StatusServiceUnavailable, animalstore.Unavailable},
		{fmt.Errorf("commit: %w", db.ErrOutcomeUnknown), http.StatusServiceUnavailable, animalstore.Unavailable},
		{fmt.Errorf("connect: %w", db.ErrUnavailable), http.StatusServiceUnavailable, animalstore.Unavailable},
		{fmt.Errorf("insert: %w", db.ErrFull), http.StatusServiceUnavailable, animalstore.StorageFull},
		{errors.New(secretDetail), http.StatusInternalServerError, animalstore.InternalError},
	} {
		refused := retry(since, test.err)
		refused.want(t, test.status, test.code)
		if got, want := strings.Contains(string(refused.body), "500 deliveries are due"), test.code == animalstore.Unavailable; got != want {
			t.Errorf("%v: got %s, which says how to continue: %t, want %t", test.err, refused.body, got, want)
		}
		wantRetried("repeated", since, all, 1)
	}
	wantRetried("a new request", since, all, 2)
	retry(since, context.DeadlineExceeded)
	s.clock.Advance(time.Hour)
	wantRetried("an hour later", since, all, 2)
}
