package dbtest

import (
	"sync"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
)

// wantWork checks which work is pending at a time. It ignores the clock, which differs
// between engines.
func wantWork(t *testing.T, d db.DB, doing string, now animalstore.Time, want db.WebhookWork) {
	t.Helper()
	got, err := d.WebhookWork(t.Context(), now)
	got.Clock = animalstore.Time{}
	if err != nil || got != want {
		t.Errorf("%s, at %s: got %+v, %v, want %+v", doing, now, got, err, want)
	}
}

func workIsFound(t *testing.T, d db.DB) {
	add := func(n int) {
		t.Helper()
		for range n {
			mustCreatePet(t, d, animalstore.NewPet{Name: "Rex", CategoryID: 1})
		}
		mustPublish(t, d)
	}
	add(1)
	wantWork(t, d, "no webhooks", noon, db.WebhookWork{})
	webhook := mustCreateWebhook(t, d, "pet.*")
	mustPublish(t, d)
	dispatch(t, d, noon)
	wantWork(t, d, "nothing happened", noon, db.WebhookWork{})
	add(1)
	wantWork(t, d, "a new event", noon, db.WebhookWork{Events: true})
	dispatch(t, d, noon)
	wantWork(t, d, "dispatched", noon, db.WebhookWork{Due: true})
	wantWork(t, d, "not due yet", after(-time.Second), db.WebhookWork{Next: noon})

	due := claim(t, d, noon)
	lease := after(time.Minute)
	wantWork(t, d, "claimed", noon, db.WebhookWork{Next: lease})
	wantWork(t, d, "the lease has ended", lease, db.WebhookWork{Due: true})
	finish(t, d, &due[0], noon, 500)
	next := deliveriesOf(t, d, webhook.ID, "")[0].NextAttemptAt
	wantWork(t, d, "failed", noon, db.WebhookWork{Next: next})

	mustUpdateWebhook(t, d, webhook.ID, animalstore.WebhookPatch{State: new(animalstore.WebhookPaused)})
	mustPublish(t, d)
	dispatch(t, d, noon)
	wantWork(t, d, "paused", noon, db.WebhookWork{})
	wantWork(t, d, "paused and due", next, db.WebhookWork{})
	if _, err := d.PingWebhook(t.Context(), webhook.ID, animalstore.WebhookPing, next); err != nil {
		t.Fatal(err)
	}
	wantWork(t, d, "a ping to come", noon, db.WebhookWork{Next: next})
	wantWork(t, d, "a ping", next, db.WebhookWork{Due: true})
	for _, ping := range claim(t, d, next) {
		finish(t, d, &ping, next, 200)
	}

	mustUpdateWebhook(t, d, webhook.ID, animalstore.WebhookPatch{State: new(animalstore.WebhookActive)})
	add(db.MaxInFlight + 4)
	dispatch(t, d, next)
	due = claim(t, d, next)
	if len(due) != db.MaxInFlight {
		t.Fatalf("%d claimed, want %d", len(due), db.MaxInFlight)
	}
	wantWork(t, d, "no more at once", next, db.WebhookWork{Next: animalstore.At(next.Add(time.Minute))})
	finish(t, d, &due[0], next, 200)
	wantWork(t, d, "one more at once", next, db.WebhookWork{Due: true, Next: animalstore.At(next.Add(time.Minute))})
}

// claimTogether claims deliveries for several workers at the same time and returns all
// of them.
func claimTogether(t *testing.T, d db.DB, claimants int) (all []db.ClaimedDelivery) {
	var mu sync.Mutex
	together(t, claimants, func(int) error {
		due, err := d.ClaimDeliveries(t.Context(), noon, after(time.Minute))
		mu.Lock()
		defer mu.Unlock()
		all = append(all, due...)
		return err
	})
	return all
}

// finishAtOnce: many workers claim deliveries and store their results at the same time.
// Each delivery is claimed once, and never while its result is being stored.
func finishAtOnce(t *testing.T, d db.DB) {
	const deliveries = 40
	webhook := webhookWithDeliveries(t, d, deliveries)
	var mu sync.Mutex
	claimed := map[int64]int{} // times, by delivery
	record := func(due ...db.ClaimedDelivery) int {
		mu.Lock()
		defer mu.Unlock()
		for i := range due {
			claimed[due[i].ID]++
		}
		return len(claimed)
	}
	together(t, 6, func(int) error {
		for record() < deliveries && !t.Failed() {
			due, err := d.ClaimDeliveries(t.Context(), noon, after(time.Minute))
			if err != nil {
				t.Error(err)
			}
			record(due...)
			for i := range due {
				for one := &due[i]; one != nil; {
					one, _, err = d.FinishDelivery(t.Context(), one.Result(animalstore.Attempt{Time: noon, Status: new(200)}, 0, 0), noon, after(time.Minute))
					if err != nil {
						t.Error(err)
					}
					if one != nil {
						record(*one)
					}
				}
			}
		}
		return nil
	})
	for id, n := range claimed {
		if n != 1 {
			t.Errorf("delivery %d was claimed %d times", id, n)
		}
	}
	if all := deliveriesOf(t, d, webhook.ID, animalstore.DeliveryDelivered); len(all) != deliveries || len(claimed) != deliveries {
		t.Errorf("%d claimed, %d delivered, want %d", len(claimed), len(all), deliveries)
	}
}

func pausedFinish(t *testing.T, d db.DB) {
	webhook := webhookWithDeliveries(t, d, 2*db.MaxInFlight)
	due := claim(t, d, noon)
	finishOne := func(i int, want bool) {
		t.Helper()
		next, _, err := d.FinishDelivery(t.Context(), due[i].Result(animalstore.Attempt{Time: noon, Status: new(200)}, 0, 0), noon, after(time.Minute))
		if err != nil || (next != nil) != want {
			t.Errorf("result %d: claimed %v, %v, want one: %t", i, next, err, want)
		}
	}
	finishOne(0, true)
	mustUpdateWebhook(t, d, webhook.ID, animalstore.WebhookPatch{State: new(animalstore.WebhookPaused)})
	finishOne(1, false)
	mustUpdateWebhook(t, d, webhook.ID, animalstore.WebhookPatch{State: new(animalstore.WebhookActive)})
	finishOne(2, true)
	if err := d.DeleteWebhook(t.Context(), webhook.ID, func(*animalstore.Webhook) error { return nil }); err != nil {
		t.Fatal(err)
	}
	finishOne(3, false)
}
