package client_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/client"
	"animalstore/client/clienttest"
)

// TestWebhookComesBack: every field of a webhook and of its deliveries survives the
// round trip, and lists contain what was requested.
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
	if got, err := c.GetWebhook(ctx, 1); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	rotated, err := c.RotateWebhook(ctx, 1, time.Hour)
	if err != nil || rotated.Webhook != want || rotated.Secret == made.Secret || !strings.HasPrefix(rotated.Secret, "whsec_") {
		t.Errorf("got %+v, %v, want %+v and another secret", rotated.Webhook, err, want)
	}
	other, err := c.CreateWebhook(ctx, animalstore.NewWebhook{URL: in.URL})
	if err != nil {
		t.Fatal(err)
	}
	if all := collect(t, c.ListWebhooks(ctx, client.PageQuery{PageSize: 1})); len(all) != 2 || all[0] != other.Webhook || all[1] != want {
		t.Errorf("got %+v, want both", all)
	}

	ping, err := c.PingWebhook(ctx, 1)
	if err != nil || ping.ID != 1 || ping.Type != animalstore.WebhookPing || ping.State != animalstore.DeliveryPending || ping.NextAttemptAt != ping.CreatedAt || ping.EventID != nil {
		t.Errorf("got %+v, %v, want a ping that is due", ping, err)
	}
	for state, n := range map[animalstore.DeliveryState]int{"": 1, animalstore.DeliveryPending: 1, animalstore.DeliveryFailed: 0} {
		if got := collect(t, c.ListDeliveries(ctx, 1, client.DeliveryQuery{State: state})); len(got) != n {
			t.Errorf("state %q: got %d deliveries, want %d", state, len(got), n)
		}
	}
	shown, err := c.GetDelivery(ctx, 1, ping.ID)
	if body := fmt.Sprintf(`{"type":"webhook.ping","timestamp":%q,"data":{}}`, ping.CreatedAt); err != nil || string(shown.Body) != body || shown.ID != ping.ID || shown.CreatedAt != ping.CreatedAt {
		t.Errorf("got %+v with %s, %v, want %+v with %s", shown.Delivery, shown.Body, err, ping, body)
	}
	sample, err := c.PingWebhookAs(ctx, 1, animalstore.PetUpdated)
	if err != nil || sample.Type != animalstore.PetUpdated || sample.EventID != nil {
		t.Errorf("got %+v, %v, want a ping with a sample", sample, err)
	}
	_, err = c.PingWebhookAs(ctx, 1, "pet.sold")
	wantCode(t, err, animalstore.ValidationFailed)
	for _, test := range []struct {
		which animalstore.DeliveryRetry
		want  int
	}{
		{animalstore.DeliveryRetry{State: animalstore.DeliveryPending}, 2},
		{animalstore.DeliveryRetry{State: animalstore.DeliveryFailed}, 0},
		{animalstore.DeliveryRetry{Since: ping.CreatedAt}, 2},
		{animalstore.DeliveryRetry{Since: ping.CreatedAt, State: animalstore.DeliveryPending}, 2},
	} {
		if n, err := c.RetryDeliveries(ctx, 1, test.which); err != nil || n != test.want {
			t.Errorf("%+v: got %d, %v, want %d", test.which, n, err, test.want)
		}
	}
	_, err = c.RetryDeliveries(ctx, 1, animalstore.DeliveryRetry{})
	wantCode(t, err, animalstore.ValidationFailed)
	if again, err := c.RetryDelivery(ctx, 1, ping.ID); err != nil || again.ID != ping.ID {
		t.Errorf("got %+v, %v, want delivery %d", again, err, ping.ID)
	}
	wantCode(t, c.DeleteWebhook(ctx, other.ID, client.IfMatch(`"x"`)), animalstore.PreconditionFailed)
	if err := c.DeleteWebhook(ctx, 1); err != nil {
		t.Error(err)
	}
	_, err = c.GetWebhook(ctx, 1)
	wantCode(t, err, animalstore.WebhookNotFound)
}

// TestSecretOfANewWebhook: neither an error nor printing or logging a webhook shows the
// secret.
func TestSecretOfANewWebhook(t *testing.T) {
	const whole = `{"id":7,"secret":"whsec_fresh","url":"https://example.com/","state":"active"}`
	calls := map[string]func(*client.Client) (client.WebhookWithSecret, error){
		"create": func(c *client.Client) (client.WebhookWithSecret, error) {
			return c.CreateWebhook(t.Context(), animalstore.NewWebhook{URL: "https://example.com/"})
		},
		"rotate": func(c *client.Client) (client.WebhookWithSecret, error) { return c.RotateWebhook(t.Context(), 7, 0) },
	}
	for name, status := range map[string]int{"create": 201, "rotate": 200} {
		c, s := scriptedClient(t, []reply{response(status, whole[:len(whole)-4])})
		if _, err := calls[name](c); !errors.Is(err, client.ErrOutcomeUnknown) || strings.Contains(err.Error(), "fresh") || len(s.sent) != 1 {
			t.Errorf("%s: got %v after %d requests, want ErrOutcomeUnknown after one, without the secret", name, err, len(s.sent))
		}
		c, _ = scriptedClient(t, []reply{response(status, `{"id":7,"url":"https://example.com/","state":"active"}`)})
		if _, err := calls[name](c); !errors.Is(err, client.ErrOutcomeUnknown) {
			t.Errorf("%s: got %v without a secret, want ErrOutcomeUnknown", name, err)
		}
		c, _ = scriptedClient(t, []reply{response(status, whole)})
		webhook, err := calls[name](c)
		if err != nil || webhook.Secret != "whsec_fresh" {
			t.Errorf("%s: got %v, want the secret", name, err)
		}
		var log bytes.Buffer
		slog.New(slog.NewJSONHandler(&log, nil)).Info("made", "webhook", webhook)
		slog.New(slog.NewTextHandler(&log, nil)).Info("made", "webhook", webhook)
		if text := fmt.Sprintf("%v %+v %#v %s %v", webhook, webhook, webhook, &webhook, log.String()); strings.Contains(text, "fresh") {
			t.Errorf("got %s, want it without the secret", text)
		}
	}
}

// TestPingIsNotRepeated: one call sends one ping, even if the response is lost. Making
// a delivery due twice does no harm.
func TestPingIsNotRepeated(t *testing.T) {
	lost := response(503, `{"code":"unavailable","message":"lost","status":503}`)
	c, s := scriptedClient(t, []reply{lost})
	if _, err := c.PingWebhook(t.Context(), 1); !errors.Is(err, client.ErrOutcomeUnknown) || len(s.sent) != 1 {
		t.Errorf("got %v after %d requests, want ErrOutcomeUnknown after one", err, len(s.sent))
	}
	c, s = scriptedClient(t, []reply{lost, response(202, `{"id":3,"type":"pet.created","state":"pending"}`)})
	if d, err := c.RetryDelivery(t.Context(), 1, 3); err != nil || d.ID != 3 || len(s.sent) != 2 {
		t.Errorf("got %+v, %v after %d requests, want the delivery after two", d, err, len(s.sent))
	}
}
