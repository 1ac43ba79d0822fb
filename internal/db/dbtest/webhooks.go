package dbtest

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
)

func mustCreateWebhook(t *testing.T, d db.DB, types animalstore.EventPatterns) animalstore.Webhook {
	t.Helper()
	w := animalstore.NewWebhook{URL: "https://example.com/hook", Types: types, Description: "for \"tests\""}
	if err := w.Validate(); err != nil {
		t.Fatal(err)
	}
	webhook, err := d.CreateWebhook(t.Context(), w, "whsec_b25l", noon)
	if err != nil {
		t.Fatal(err)
	}
	return webhook
}

func mustUpdateWebhook(t *testing.T, d db.DB, id int64, patch animalstore.WebhookPatch) animalstore.Webhook {
	t.Helper()
	webhook, err := d.UpdateWebhook(t.Context(), id, patch.Apply)
	if err != nil {
		t.Fatal(err)
	}
	return webhook
}

func webhooksReadBack(t *testing.T, d db.DB) {
	log := &eventLog{d: d}
	webhook := mustCreateWebhook(t, d, "pet.*,key.banned")
	want := animalstore.Webhook{ID: webhook.ID, URL: "https://example.com/hook", Types: "pet.*,key.banned", Description: "for \"tests\"", State: animalstore.WebhookActive, CreatedAt: noon}
	read := func(doing string) {
		t.Helper()
		if got, err := d.Webhook(t.Context(), want.ID); err != nil || got != want {
			t.Errorf("%s: got %+v, %v, want %+v", doing, got, err, want)
		}
	}
	read("created")
	log.want(t, "creation", []string{subject("webhook.created", webhook.ID)}, &webhook)
	want.URL, want.Types, want.Description, want.State = "https://example.org", "order.*", "for <others>", animalstore.WebhookPaused
	webhook = mustUpdateWebhook(t, d, want.ID, animalstore.WebhookPatch{URL: &want.URL, Types: &want.Types, Description: &want.Description, State: &want.State})
	read("updated")
	log.want(t, "change", []string{subject("webhook.updated", webhook.ID)}, &webhook)
	mustUpdateWebhook(t, d, want.ID, animalstore.WebhookPatch{State: &want.State})
	if _, err := d.RotateWebhook(t.Context(), want.ID, "whsec_dHdv", later, func(*animalstore.Webhook) error { return nil }); err != nil {
		t.Fatal(err)
	}
	log.want(t, "no change", []string{})
	refused := errors.New("refused")
	refuse := func(*animalstore.Webhook) error { return refused }
	_, err := d.UpdateWebhook(t.Context(), want.ID, refuse)
	_, rotateErr := d.RotateWebhook(t.Context(), want.ID, "whsec_dHdv", later, refuse)
	for _, err := range []error{err, rotateErr, d.DeleteWebhook(t.Context(), want.ID, refuse)} {
		if !errors.Is(err, refused) {
			t.Errorf("got %v, want check's error", err)
		}
	}
	read("refused")
	if err := d.DeleteWebhook(t.Context(), want.ID, func(w *animalstore.Webhook) error { return nil }); err != nil {
		t.Fatal(err)
	}
	log.want(t, "removal", []string{subject("webhook.deleted", webhook.ID)}, &webhook)
	if next := mustCreateWebhook(t, d, "pet.*"); next.ID <= want.ID {
		t.Errorf("got the id %d again", next.ID)
	}
	absentWebhooks(t, d, want.ID)
}

func absentWebhooks(t *testing.T, d db.DB, id int64) {
	t.Helper()
	nothing := func(*animalstore.Webhook) error { t.Error("called for an absent webhook"); return nil }
	_, webhook := d.Webhook(t.Context(), id)
	_, update := d.UpdateWebhook(t.Context(), id, nothing)
	_, rotate := d.RotateWebhook(t.Context(), id, "whsec_dHdv", later, nothing)
	_, ping := d.PingWebhook(t.Context(), id, animalstore.WebhookPing, noon)
	_, deliveries := d.Deliveries(t.Context(), id, animalstore.DeliveryQuery{}, db.Page{Limit: 10})
	_, delivery := d.Delivery(t.Context(), id, 1)
	_, retry := d.RetryDelivery(t.Context(), id, 1, noon)
	_, _, retryAll := db.RetryAll(t.Context(), d, db.RetryQuery{WebhookID: id, DeliveryRetry: animalstore.DeliveryRetry{Since: noon}}, noon)
	for i, err := range []error{webhook, update, rotate, ping, deliveries, delivery, retry, retryAll, d.DeleteWebhook(t.Context(), id, nothing)} {
		if !errors.Is(err, db.ErrNotFound) {
			t.Errorf("absent webhook, operation %d: got %v, want ErrNotFound", i, err)
		}
	}
}

func webhookLists(t *testing.T, d db.DB) {
	var refused atomic.Int64
	together(t, animalstore.MaxWebhooks+10, func(n int) error {
		_, err := d.CreateWebhook(t.Context(), animalstore.NewWebhook{URL: fmt.Sprintf("https://%d.example", n), Types: "pet.*"}, "whsec_b25l", noon)
		if hasCode(err, animalstore.TooManyWebhooks) {
			refused.Add(1)
			return nil
		}
		return err
	})
	if refused.Load() != 10 {
		t.Errorf("%d were refused, want 10", refused.Load())
	}
	var ids []int64
	for before := int64(0); ; before = ids[len(ids)-1] {
		page, err := d.Webhooks(t.Context(), db.Page{After: before, Limit: 20})
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range page {
			ids = append(ids, w.ID)
		}
		if len(page) < 20 {
			break
		}
	}
	if len(ids) != animalstore.MaxWebhooks || !slices.IsSortedFunc(ids, func(a, b int64) int { return int(b - a) }) {
		t.Errorf("got %d webhooks, %v, want %d by descending id", len(ids), ids, animalstore.MaxWebhooks)
	}
}

func webhooksAreDisabled(t *testing.T, d db.DB) {
	gone, failing := mustCreateWebhook(t, d, "pet.*"), mustCreateWebhook(t, d, "pet.*,webhook.disabled")
	log := &eventLog{d: d}
	log.next(t)
	attempt := func(webhookID int64, at animalstore.Time, status int) (disabled animalstore.OptionalText) {
		t.Helper()
		mustCreatePet(t, d, animalstore.NewPet{Name: "Rex", CategoryID: 1})
		log.next(t)
		dispatch(t, d, at)
		for _, due := range claim(t, d, at) {
			if due.WebhookID == webhookID && disabled == "" {
				disabled = finish(t, d, &due, at, status)
			} else if err := d.ReleaseDelivery(t.Context(), due); err != nil {
				t.Fatal(err)
			}
		}
		return disabled
	}
	if reason := attempt(gone.ID, noon, 410); reason == "" {
		t.Error("410 doesn't disable")
	}
	got, err := d.Webhook(t.Context(), gone.ID)
	if err != nil || got.State != animalstore.WebhookDisabled || got.DisabledReason == "" {
		t.Errorf("got %+v, %v, want it disabled", got, err)
	}
	log.want(t, "410", []string{subject("webhook.disabled", gone.ID)}, &got)
	mustUpdateWebhook(t, d, gone.ID, animalstore.WebhookPatch{Description: new("gone")})
	log.want(t, "a change while disabled", []string{subject("webhook.updated", gone.ID)})

	day := 24 * time.Hour
	for _, step := range []struct {
		at       time.Duration
		status   int
		disabled bool
	}{
		{0, 500, false}, {4 * day, 500, false}, {4*day + 1, 200, false},
		{5 * day, 500, false}, {10*day - time.Second, 429, false}, {10 * day, 500, true},
	} {
		if reason := attempt(failing.ID, after(step.at), step.status); (reason != "") != step.disabled {
			t.Errorf("%d at %s: disabled because of %q, want %t", step.status, step.at, reason, step.disabled)
		}
	}
	log.want(t, "five days", []string{subject("webhook.disabled", failing.ID)})
	if due := claim(t, d, after(20*day)); len(due) != 0 {
		t.Errorf("%d deliveries to disabled webhooks are due", len(due))
	}
	mustUpdateWebhook(t, d, failing.ID, animalstore.WebhookPatch{State: new(animalstore.WebhookActive)})
	log.want(t, "activation", []string{subject("webhook.updated", failing.ID)})
	if reason := attempt(failing.ID, after(20*day), 500); reason != "" {
		t.Errorf("disabled at once: %s, want another five days", reason)
	}
	pending, err := d.Deliveries(t.Context(), failing.ID, animalstore.DeliveryQuery{State: animalstore.DeliveryPending}, db.Page{Limit: 100})
	if err != nil || len(pending) == 0 {
		t.Fatalf("got %d pending deliveries, %v, want some", len(pending), err)
	}
	stats, err := d.WebhookStats(t.Context(), after(30*day))
	if err != nil || stats.Active != 1 || stats.Disabled != 1 || stats.Paused != 0 || stats.OldestDue.IsZero() || stats.Waiting != len(pending) {
		t.Errorf("got %+v, %v, want %d waiting", stats, err, len(pending))
	}
	if n, err := d.PauseWebhooks(t.Context()); err != nil || n != 1 {
		t.Errorf("paused %d, %v, want 1", n, err)
	}
	log.want(t, "pause of all", []string{})
	if stats, err = d.WebhookStats(t.Context(), after(30*day)); err != nil || stats != (db.WebhookStats{Paused: 1, Disabled: 1}) {
		t.Errorf("got %+v, %v, want nothing active or due", stats, err)
	}
}

func secretsRotate(t *testing.T, d db.DB) {
	webhook := mustCreateWebhook(t, d, "pet.*")
	yes := func(*animalstore.Webhook) error { return nil }
	secrets := func(at animalstore.Time) []string {
		t.Helper()
		if _, err := d.PingWebhook(t.Context(), webhook.ID, animalstore.WebhookPing, at); err != nil {
			t.Fatal(err)
		}
		due := claim(t, d, at)
		if len(due) != 1 || due[0].Type != animalstore.WebhookPing || due[0].EventID != 0 || string(due[0].Data) != "{}" || due[0].Time != at {
			t.Fatalf("got %v, want a ping", due)
		}
		finish(t, d, &due[0], at, 500)
		return due[0].Secrets
	}
	rotate := func(secret string, until animalstore.Time) {
		t.Helper()
		if _, err := d.RotateWebhook(t.Context(), webhook.ID, secret, until, yes); err != nil {
			t.Fatal(err)
		}
	}
	check := func(at animalstore.Time, want ...string) {
		t.Helper()
		if got := secrets(at); !slices.Equal(got, want) {
			t.Errorf("at %s: got %q, want %q", at, got, want)
		}
	}
	check(noon, "whsec_b25l")
	rotate("whsec_dHdv", after(time.Hour))
	check(after(time.Hour-time.Millisecond), "whsec_dHdv", "whsec_b25l")
	check(after(time.Hour), "whsec_dHdv")
	rotate("whsec_dGhyZWU=", after(time.Hour)) // no grace
	check(after(time.Hour), "whsec_dGhyZWU=")
	mustUpdateWebhook(t, d, webhook.ID, animalstore.WebhookPatch{State: new(animalstore.WebhookPaused)})
	check(after(2*time.Hour), "whsec_dGhyZWU=") // pings are sent anyway
	pings := deliveriesOf(t, d, webhook.ID, animalstore.DeliveryFailed)
	if len(pings) != 5 || pings[0].EventID != nil || pings[0].Type != animalstore.WebhookPing || len(pings[0].Attempts) != 1 {
		t.Errorf("got %+v, want five pings that failed at once", pings)
	}
}
