package dbtest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
)

// dispatch publishes and dispatches everything.
func dispatch(t *testing.T, d db.DB, at animalstore.Time) {
	t.Helper()
	mustPublish(t, d)
	for more := true; more; {
		var err error
		if more, err = d.DispatchEvents(t.Context(), at, 3); err != nil {
			t.Fatal(err)
		}
	}
}

// webhookWithDeliveries returns a new webhook with n deliveries that are due at noon.
func webhookWithDeliveries(t *testing.T, d db.DB, n int) animalstore.Webhook {
	t.Helper()
	webhook := mustCreateWebhook(t, d, "pet.*")
	createMany(t, d, n)
	dispatch(t, d, noon)
	return webhook
}

func claim(t *testing.T, d db.DB, now animalstore.Time) []db.ClaimedDelivery {
	t.Helper()
	due, err := d.ClaimDeliveries(t.Context(), now, animalstore.At(now.Add(time.Minute)))
	if err != nil {
		t.Fatal(err)
	}
	return due
}

// finish stores the result of an attempt without claiming another delivery.
func finish(t *testing.T, d db.DB, due *db.ClaimedDelivery, at animalstore.Time, status int) (disabled animalstore.OptionalText) {
	t.Helper()
	a := animalstore.Attempt{Time: at, Status: &status, DurationMs: 5}
	_, disabled, err := d.FinishDelivery(t.Context(), due.Result(a, 0.5, 0), at, animalstore.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return disabled
}

func deliveriesOf(t *testing.T, d db.DB, webhookID int64, state animalstore.DeliveryState) []animalstore.Delivery {
	t.Helper()
	all, err := d.Deliveries(t.Context(), webhookID, animalstore.DeliveryQuery{State: state}, db.Page{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func after(d time.Duration) animalstore.Time { return animalstore.At(noon.Add(d)) }

func claimsAreExclusive(t *testing.T, d db.DB) {
	one, two := mustCreateWebhook(t, d, "pet.*"), mustCreateWebhook(t, d, "pet.*")
	for range 12 {
		mustCreatePet(t, d, animalstore.NewPet{Name: "Rex", CategoryID: 1})
	}
	dispatch(t, d, noon)
	if due := claim(t, d, animalstore.At(noon.Add(-time.Second))); len(due) != 0 {
		t.Errorf("%d claimed before they are due", len(due))
	}
	seen := map[int64]*db.ClaimedDelivery{}
	byWebhook := map[int64]int{}
	for _, one := range claimTogether(t, d, 4) {
		if seen[one.ID] != nil {
			t.Errorf("delivery %d was claimed twice", one.ID)
		}
		seen[one.ID] = &one
		byWebhook[one.WebhookID]++
		if one.URL != "https://example.com/hook" || !slices.Equal(one.Secrets, []string{"whsec_b25l"}) || one.EventID == 0 || len(one.Data) == 0 || one.Lease != after(time.Minute) {
			t.Errorf("got %s: %d, %s, %s", one, one.EventID, one.URL, one.Data)
		}
	}
	for _, w := range []animalstore.Webhook{one, two} {
		if byWebhook[w.ID] != db.MaxInFlight {
			t.Errorf("%d of webhook %d were claimed, want %d", byWebhook[w.ID], w.ID, db.MaxInFlight)
		}
	}
	// Released deliveries, and those whose lease has ended, are due again.
	for _, due := range seen {
		if due.WebhookID == one.ID {
			if err := d.ReleaseDelivery(t.Context(), *due); err != nil {
				t.Fatal(err)
			}
		}
	}
	again := claim(t, d, after(time.Second))
	if len(again) != db.MaxInFlight || again[0].WebhookID != one.ID {
		t.Errorf("%d claimed after a release, want %d", len(again), db.MaxInFlight)
	}
	stale := claim(t, d, after(time.Minute))
	if len(stale) != db.MaxInFlight || stale[0].WebhookID != two.ID {
		t.Errorf("%d claimed after the lease, want %d", len(stale), db.MaxInFlight)
	}
	// The release and the result of a claim that has ended are ignored.
	if err := d.ReleaseDelivery(t.Context(), *seen[stale[0].ID]); err != nil {
		t.Fatal(err)
	}
	if again := claim(t, d, after(time.Minute)); len(again) != 0 {
		t.Errorf("%d claimed after a release by their former holder, want none", len(again))
	}
	for _, status := range []int{500, 200} {
		finish(t, d, seen[stale[0].ID], after(time.Minute), status)
	}
	pending := deliveriesOf(t, d, two.ID, animalstore.DeliveryPending)
	if len(pending) != 12 || slices.ContainsFunc(pending, func(d animalstore.Delivery) bool { return len(d.Attempts) != 0 }) {
		t.Errorf("%d pending, want 12 without an attempt: %+v", len(pending), pending)
	}
	next, _, err := d.FinishDelivery(t.Context(), stale[0].Result(animalstore.Attempt{Time: after(time.Minute), Status: new(200)}, 0, 0), after(time.Minute), after(2*time.Minute))
	if err != nil || next == nil || next.WebhookID != two.ID || next.ID == stale[0].ID || next.Lease != after(2*time.Minute) {
		t.Fatalf("got %v, %v, want another delivery to the same webhook", next, err)
	}
}

func attemptsAreStored(t *testing.T, d db.DB) {
	webhook := webhookWithDeliveries(t, d, 1)
	log := &eventLog{d: d}
	log.next(t)
	now, want := noon, 0
	for {
		due := claim(t, d, now)
		if len(due) != 1 || due[0].Tries != want || due[0].EventID == 0 {
			t.Fatalf("attempt %d at %s: got %d, want one", want+1, now, len(due))
		}
		finish(t, d, &due[0], now, 500)
		want++
		got := deliveriesOf(t, d, webhook.ID, "")[0]
		if len(got.Attempts) != want || got.Attempts[want-1].Time != now || *got.Attempts[want-1].Status != 500 || got.Attempts[want-1].DurationMs != 5 {
			t.Fatalf("after attempt %d: got %+v", want, got)
		}
		if got.State != animalstore.DeliveryPending {
			break
		}
		if next, _ := db.NextAttempt(want, animalstore.At(now.Add(5*time.Millisecond)), 0.5, 0); got.NextAttemptAt != next {
			t.Errorf("attempt %d is due at %s, want %s", want+1, got.NextAttemptAt, next)
		}
		if early := claim(t, d, animalstore.At(got.NextAttemptAt.Add(-time.Millisecond))); len(early) != 0 {
			t.Fatalf("attempt %d is due early", want+1)
		}
		now = got.NextAttemptAt
	}
	if got := deliveriesOf(t, d, webhook.ID, animalstore.DeliveryFailed); want != 10 || len(got) != 1 || !got[0].NextAttemptAt.IsZero() {
		t.Errorf("gave up after %d attempts: %+v, want 10", want, got)
	}
	got, err := d.Webhook(t.Context(), webhook.ID)
	if err != nil || got.LastFailedAt != now || !got.LastDeliveredAt.IsZero() || got.State != animalstore.WebhookActive {
		t.Errorf("got %+v, %v, want it active and failed at %s", got, err, now)
	}
	log.want(t, "attempts", []string{})

	delivery := deliveriesOf(t, d, webhook.ID, "")[0]
	if again, err := d.RetryDelivery(t.Context(), webhook.ID, delivery.ID, now); err != nil || again.State != animalstore.DeliveryPending || again.NextAttemptAt != now {
		t.Errorf("retry: got %+v, %v, want it due", again, err)
	}
	if _, err := d.RetryDelivery(t.Context(), webhook.ID+1, delivery.ID, now); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("retry of another webhook's: got %v, want ErrNotFound", err)
	}
	due := claim(t, d, now)
	if len(due) != 1 || due[0].Tries != 0 {
		t.Fatalf("claimed %d after a retry, want one that has all its attempts again", len(due))
	}
	finish(t, d, &due[0], now, 204)
	if got := deliveriesOf(t, d, webhook.ID, animalstore.DeliveryDelivered); len(got) != 1 || len(got[0].Attempts) != 11 {
		t.Errorf("after a retry: got %+v, want it delivered", got)
	}
	if got, err := d.Webhook(t.Context(), webhook.ID); err != nil || got.LastDeliveredAt != now {
		t.Errorf("got %+v, %v, want it delivered at %s", got, err, now)
	}
}

func deliveryLists(t *testing.T, d db.DB) {
	webhook, other := mustCreateWebhook(t, d, "pet.*"), mustCreateWebhook(t, d, "pet.*")
	for range 7 {
		mustCreatePet(t, d, animalstore.NewPet{Name: "Rex", CategoryID: 1})
	}
	dispatch(t, d, noon)
	for i, due := range claim(t, d, noon) {
		finish(t, d, &due, noon, []int{200, 500, 410}[min(i%7/2, 1)])
	}
	for _, state := range []animalstore.DeliveryState{"", animalstore.DeliveryPending, animalstore.DeliveryDelivered} {
		whole := deliveriesOf(t, d, webhook.ID, state)
		var ids, paged []int64
		for _, one := range whole {
			ids = append(ids, one.ID)
			if state != "" && one.State != state {
				t.Errorf("a list of %s contains %s", state, one.State)
			}
		}
		for before := int64(0); ; before = paged[len(paged)-1] {
			page, err := d.Deliveries(t.Context(), webhook.ID, animalstore.DeliveryQuery{State: state}, db.Page{After: before, Limit: 2})
			if err != nil {
				t.Fatal(err)
			}
			for _, one := range page {
				paged = append(paged, one.ID)
			}
			if len(page) < 2 {
				break
			}
		}
		if !slices.Equal(ids, paged) || !slices.IsSortedFunc(ids, func(a, b int64) int { return int(b - a) }) || len(ids) == 0 {
			t.Errorf("%q: got %v in one list and %v in pages, want the newest first", state, ids, paged)
		}
	}
	if n, err := d.DropDeliveries(t.Context(), noon, 100); err != nil || n != 0 {
		t.Errorf("dropped %d, %v, want no new one dropped", n, err)
	}
	for _, want := range []int{5, 5, 4, 0} {
		if n, err := d.DropDeliveries(t.Context(), later, 5); err != nil || n != want {
			t.Errorf("dropped %d, %v, want %d", n, err, want)
		}
	}
	if left := len(deliveriesOf(t, d, webhook.ID, "")) + len(deliveriesOf(t, d, other.ID, "")); left != 0 {
		t.Errorf("%d deliveries are left", left)
	}
}
