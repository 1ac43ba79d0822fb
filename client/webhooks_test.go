package client_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"animalstore"
	"animalstore/client"
	"animalstore/client/clienttest"
)

// TestWebhookComesBack: every field of a webhook survives the round trip.
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
}

// TestRetryOfVeryMany: a call that needs several requests continues until all deliveries
// are due. If it gives up before that, some of them are.
func TestRetryOfVeryMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := animalstore.DeliveryRetry{State: animalstore.DeliveryFailed}
		unfinished := apiError(503, animalstore.Unavailable, "Retry-After", "1")
		c, s := scriptedClient(t, []reply{unfinished, unfinished, response(202, `{"deliveries":1200}`)})
		if n, err := c.RetryDeliveries(t.Context(), 1, failed); err != nil || n != 1200 || len(s.sent) != 3 {
			t.Errorf("got %d, %v after %d requests, want 1200 after 3", n, err, len(s.sent))
		}
		for _, last := range []reply{unfinished, apiError(503, animalstore.StorageFull, "Retry-After", "1")} {
			c, _ = scriptedClient(t, []reply{last})
			if n, err := c.RetryDeliveries(t.Context(), 1, failed); !errors.Is(err, client.ErrOutcomeUnknown) {
				t.Errorf("got %d, %v, want ErrOutcomeUnknown", n, err)
			}
		}
	})
}
