package dbtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
)

func mustPing(t *testing.T, d db.DB, webhookID int64, eventType animalstore.EventType, at animalstore.Time) animalstore.Delivery {
	t.Helper()
	ping, err := d.PingWebhook(t.Context(), webhookID, eventType, at)
	if err != nil {
		t.Fatal(err)
	}
	return ping
}

func deliveriesShowBodies(t *testing.T, d db.DB) {
	webhook, other := mustCreateWebhook(t, d, "pet.*"), mustCreateWebhook(t, d, "key.*")
	mustCreatePet(t, d, animalstore.NewPet{Name: "<Mia> & \u2028 \"é\"", CategoryID: 1})
	dispatch(t, d, noon)
	due := claim(t, d, noon)
	if len(due) != 1 {
		t.Fatalf("claimed %d, want 1", len(due))
	}
	finish(t, d, &due[0], noon, 500)
	want := animalstore.DeliveryWithBody{Delivery: deliveriesOf(t, d, webhook.ID, "")[0], Body: due[0].Body()}
	check := func(when string) {
		t.Helper()
		got, err := d.Delivery(t.Context(), webhook.ID, want.ID)
		if err != nil || encoded(t, got) != encoded(t, want) {
			t.Errorf("%s: got %s, %v\nwant %s", when, encoded(t, got), err, encoded(t, want))
		}
	}
	check("an event")
	if dropped, err := d.DropEvents(t.Context(), animalstore.At(time.Now().Add(time.Hour)), 100); err != nil || dropped == 0 {
		t.Fatalf("dropped %d events, %v, want all", dropped, err)
	}
	check("a dropped event")
	for _, id := range []int64{want.ID + 1, 0, -1} {
		if _, err := d.Delivery(t.Context(), webhook.ID, id); !errors.Is(err, db.ErrNotFound) {
			t.Errorf("delivery %d: got %v, want ErrNotFound", id, err)
		}
	}
	if _, err := d.Delivery(t.Context(), other.ID, want.ID); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("another webhook's: got %v, want ErrNotFound", err)
	}
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func pingsHaveSamples(t *testing.T, d db.DB) {
	webhook := mustCreateWebhook(t, d, "order.*")
	mustUpdateWebhook(t, d, webhook.ID, animalstore.WebhookPatch{State: new(animalstore.WebhookPaused)})
	for _, eventType := range append([]animalstore.EventType{animalstore.WebhookPing}, animalstore.EventTypes...) {
		ping := mustPing(t, d, webhook.ID, eventType, noon)
		if ping.Type != eventType || ping.EventID != nil || ping.State != animalstore.DeliveryPending {
			t.Errorf("%s: got %+v, want a ping of this type", eventType, ping)
		}
		due := claim(t, d, noon)
		if len(due) != 1 || due[0].Type != eventType || !strings.HasPrefix(due[0].MessageID(), "ping_") {
			t.Fatalf("%s: claimed %v, want one ping of this type", eventType, due)
		}
		want := fmt.Sprintf(`{"type":%q,"timestamp":%q,"data":%s}`, eventType, noon, db.PingData(eventType, noon))
		if got, err := d.Delivery(t.Context(), webhook.ID, ping.ID); err != nil || string(got.Body) != want || string(due[0].Body()) != want {
			t.Errorf("%s: got %s, %v and sent %s\nwant %s", eventType, got.Body, err, due[0].Body(), want)
		}
		finish(t, d, &due[0], noon, 500)
		if failed := deliveriesOf(t, d, webhook.ID, animalstore.DeliveryFailed); len(failed) == 0 || failed[0].ID != ping.ID {
			t.Errorf("%s: got %+v, want the ping failed after one attempt", eventType, failed)
		}
	}
}

// wantDue checks which deliveries of a webhook are due at a time, newest first.
func wantDue(t *testing.T, d db.DB, doing string, webhookID int64, at animalstore.Time, want ...int64) {
	t.Helper()
	var got []int64
	for _, one := range deliveriesOf(t, d, webhookID, animalstore.DeliveryPending) {
		if !one.NextAttemptAt.After(at.Time) {
			got = append(got, one.ID)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v are due at %s, want %v", doing, got, at, want)
	}
}

func deliveriesAreRetried(t *testing.T, d db.DB) {
	webhook, other := mustCreateWebhook(t, d, "pet.*"), mustCreateWebhook(t, d, "key.*")
	var ids []int64 // oldest first: failed, delivered, pending with a later attempt, due
	for i, status := range []int{500, 200, 500, 0} {
		at := after(time.Duration(i) * time.Hour)
		if i == 2 {
			mustCreatePet(t, d, animalstore.NewPet{Name: "Rex", CategoryID: 1})
			dispatch(t, d, at)
		} else {
			mustPing(t, d, webhook.ID, animalstore.WebhookPing, at)
		}
		ids = append(ids, deliveriesOf(t, d, webhook.ID, "")[0].ID)
		if due := claim(t, d, at); status != 0 {
			finish(t, d, &due[0], at, status)
		} else if err := d.ReleaseDelivery(t.Context(), due[0]); err != nil {
			t.Fatal(err)
		}
	}
	mustPing(t, d, other.ID, animalstore.WebhookPing, after(24*time.Hour))
	now := after(3 * time.Hour)
	retry := func(match animalstore.DeliveryRetry, want int) {
		t.Helper()
		if n, _, err := db.RetryAll(t.Context(), d, db.RetryQuery{WebhookID: webhook.ID, DeliveryRetry: match}, now); err != nil || n != want {
			t.Errorf("%+v: %d are due, %v, want %d", match, n, err, want)
		}
	}
	now = after(2*time.Hour + time.Second) // before the second attempt of the third
	wantDue(t, d, "before", webhook.ID, now)
	retry(animalstore.DeliveryRetry{State: animalstore.DeliveryFailed, Since: after(time.Millisecond)}, 0)
	retry(animalstore.DeliveryRetry{State: animalstore.DeliveryPending, Since: after(3*time.Hour + time.Millisecond)}, 0)
	wantDue(t, d, "no match", webhook.ID, now)
	retry(animalstore.DeliveryRetry{State: animalstore.DeliveryPending, Since: after(2*time.Hour + time.Millisecond)}, 1)
	wantDue(t, d, "pending since", webhook.ID, now, ids[3])
	retry(animalstore.DeliveryRetry{State: animalstore.DeliveryPending}, 2)
	wantDue(t, d, "pending", webhook.ID, now, ids[3], ids[2])
	retry(animalstore.DeliveryRetry{State: animalstore.DeliveryFailed}, 1)
	retry(animalstore.DeliveryRetry{State: animalstore.DeliveryFailed}, 0)
	wantDue(t, d, "failed", webhook.ID, now, ids[3], ids[2], ids[0])
	now = after(4 * time.Hour)
	retry(animalstore.DeliveryRetry{Since: after(time.Hour)}, 3)
	wantDue(t, d, "everything since", webhook.ID, now, ids[3], ids[2], ids[1], ids[0])
	wantDue(t, d, "those due already keep their time", webhook.ID, after(3*time.Hour), ids[3], ids[2], ids[0])
	wantDue(t, d, "another webhook", other.ID, now)
	for _, due := range claim(t, d, now) {
		if due.Tries != 0 {
			t.Errorf("%s has %d attempts behind it, want all before it again", due, due.Tries)
		}
	}
}

// retriesInSteps retries more deliveries than fit in one transaction, one of which was
// delivered.
func retriesInSteps(t *testing.T, d db.DB) {
	const deliveries = 2*db.MaxRetried + 100
	webhook := mustCreateWebhook(t, d, "pet.*")
	createMany(t, d, deliveries)
	mustPublish(t, d)
	for more := true; more; {
		var err error
		if more, err = d.DispatchEvents(t.Context(), later, 1000); err != nil {
			t.Fatal(err)
		}
	}
	due := claim(t, d, later)
	finish(t, d, &due[0], later, 200)
	retry := func(match animalstore.DeliveryRetry, steps ...int) {
		t.Helper()
		var got []int
		for q := (db.RetryQuery{WebhookID: webhook.ID, DeliveryRetry: match}); len(got) == 0 || q.Before != 0; {
			n, next, err := d.RetryDeliveries(t.Context(), q, noon)
			if err != nil {
				t.Fatal(err)
			}
			got, q.Before = append(got, n), next
		}
		if !slices.Equal(got, steps) {
			t.Errorf("%+v: got %v, want %v", match, got, steps)
		}
	}
	retry(animalstore.DeliveryRetry{State: animalstore.DeliveryPending}, db.MaxRetried, db.MaxRetried, 99)
	retry(animalstore.DeliveryRetry{State: animalstore.DeliveryPending}, db.MaxRetried, db.MaxRetried, 99) // they are due already
	retry(animalstore.DeliveryRetry{State: animalstore.DeliveryDelivered, Since: animalstore.At(later.Add(time.Millisecond))}, 0)
	retry(animalstore.DeliveryRetry{Since: animalstore.At(later.Add(time.Minute + time.Millisecond))}, 0) // it looks no further
	retry(animalstore.DeliveryRetry{Since: later}, db.MaxRetried, db.MaxRetried, 100)
	for _, one := range deliveriesOf(t, d, webhook.ID, "") {
		if one.NextAttemptAt != noon {
			t.Fatalf("got %+v, want it due at %s", one, noon)
		}
	}
}

// retriesDuringAttempts retries deliveries that are being sent: each is sent once more,
// regardless of the result of the attempt in progress, which is recorded.
func retriesDuringAttempts(t *testing.T, d db.DB) {
	webhook := webhookWithDeliveries(t, d, 1)
	mustPing(t, d, webhook.ID, animalstore.WebhookPing, noon)
	now, sent := noon, map[int64]int{}
	for round, status := range []int{500, 200, 500, 200} {
		due := claim(t, d, now)
		if len(due) != 2 || due[0].Tries != 0 || due[1].Tries != 0 {
			t.Fatalf("round %d: claimed %v, want both, with all their attempts before them", round, due)
		}
		if round < 2 {
			for _, one := range due {
				if _, err := d.RetryDelivery(t.Context(), webhook.ID, one.ID, now); err != nil {
					t.Fatal(err)
				}
			}
		} else if n, _, err := db.RetryAll(t.Context(), d, db.RetryQuery{WebhookID: webhook.ID, DeliveryRetry: animalstore.DeliveryRetry{Since: noon}}, now); err != nil || n != 2 {
			t.Fatalf("round %d: retried %d, %v, want 2", round, n, err)
		}
		for _, one := range due {
			sent[one.ID]++
			finish(t, d, &one, now, status)
			if got, err := d.Delivery(t.Context(), webhook.ID, one.ID); err != nil || got.State != animalstore.DeliveryPending || got.NextAttemptAt.After(now.Time) || len(got.Attempts) != sent[one.ID] {
				t.Errorf("round %d: got %+v, %v, want it due at once, with %d attempts", round, got, err, sent[one.ID])
			}
		}
		now = animalstore.At(now.Add(time.Minute))
	}
	for _, one := range claim(t, d, now) {
		finish(t, d, &one, now, 200)
	}
	if got := deliveriesOf(t, d, webhook.ID, animalstore.DeliveryDelivered); len(got) != 2 {
		t.Errorf("%d are delivered after an attempt without a retry, want 2", len(got))
	}
}
