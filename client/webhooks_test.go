package client_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/client"
	"animalstore/client/clienttest"
)

// TestWebhookComesBack: every field of a webhook and of its deliveries survives the round
// trip.
func TestWebhookComesBack(t *testing.T) {
	c, ctx := clienttest.New(t).Client, t.Context()
	in := animalstore.NewWebhook{URL: "https://example.com/?a=%3C&b=1", Types: "pet.*,key.banned", Description: "<shop> & \u2028 \"é\""}
	made, err := c.CreateWebhook(ctx, in)
	want := animalstore.Webhook{ID: 1, URL: in.URL, Types: in.Types, Description: in.Description, State: animalstore.WebhookActive, CreatedAt: made.CreatedAt}
	if err != nil || made.Webhook != want || made.CreatedAt.IsZero() || !strings.HasPrefix(made.Secret, "whsec_") {
		t.Errorf("got %+v, %v, want %+v and a secret", made.Webhook, err, want)
	}
	want.URL, want.Types, want.Description, want.State = "https://example.org/", "order.*", "", animalstore.WebhookPaused
	changed, err := c.UpdateWebhook(ctx, 1, animalstore.WebhookPatch{URL: &want.URL, Types: &want.Types, Description: &want.Description, State: &want.State})
	if err != nil || changed != want {
		t.Errorf("got %+v, %v, want %+v", changed, err, want)
	}
	rotated, err := c.RotateWebhook(ctx, 1, time.Hour)
	if err != nil || rotated.Webhook != want || rotated.Secret == made.Secret || !strings.HasPrefix(rotated.Secret, "whsec_") {
		t.Errorf("got %+v, %v, want %+v and another secret", rotated.Webhook, err, want)
	}
	ping, err := c.PingWebhook(ctx, 1)
	if err != nil || ping.ID != 1 || ping.Type != animalstore.WebhookPing || ping.State != animalstore.DeliveryPending || ping.NextAttemptAt != ping.CreatedAt || ping.EventID != nil {
		t.Errorf("got %+v, %v, want a ping that is due", ping, err)
	}
	shown, err := c.GetDelivery(ctx, 1, ping.ID)
	if body := fmt.Sprintf(`{"type":"webhook.ping","timestamp":%q,"data":{}}`, ping.CreatedAt); err != nil || string(shown.Body) != body || shown.ID != ping.ID || shown.CreatedAt != ping.CreatedAt {
		t.Errorf("got %+v with %s, %v, want %+v with %s", shown.Delivery, shown.Body, err, ping, body)
	}
	for _, test := range []struct {
		which animalstore.DeliveryRetry
		want  int
	}{
		{animalstore.DeliveryRetry{State: animalstore.DeliveryPending}, 1},
		{animalstore.DeliveryRetry{State: animalstore.DeliveryFailed}, 0},
		{animalstore.DeliveryRetry{Since: ping.CreatedAt}, 1},
	} {
		listed := collect(t, c.ListDeliveries(ctx, 1, client.DeliveryQuery{State: test.which.State}))
		if n, err := c.RetryDeliveries(ctx, 1, test.which); err != nil || n != test.want || len(listed) != test.want {
			t.Errorf("%+v: listed %d, retried %d, %v, want %d", test.which, len(listed), n, err, test.want)
		}
	}
}
