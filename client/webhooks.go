package client

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"animalstore"
)

// WebhookWithSecret is a webhook in the only responses that show its secret. Printing
// or logging it omits the secret, which is in Secret and in its JSON.
type WebhookWithSecret struct {
	animalstore.Webhook
	Secret string `json:"secret"`
}

func (w WebhookWithSecret) String() string {
	return fmt.Sprintf("webhook %d (%s), secret not shown", w.ID, w.URL)
}

// GoString is like String, for %#v.
func (w WebhookWithSecret) GoString() string { return w.String() }

// LogValue is like String, for log/slog.
func (w WebhookWithSecret) LogValue() slog.Value { return slog.StringValue(w.String()) }

// ListWebhooks lists webhooks, newest first. Like all operations on webhooks it needs a
// key with the admin permission.
func (c *Client) ListWebhooks(ctx context.Context, options ...CallOption) iter.Seq2[animalstore.Webhook, error] {
	return list(ctx, c, "listWebhooks", "/webhooks", url.Values{}, options, isWebhook)
}

// CreateWebhook creates a webhook. Store its secret: it is not shown again, and
// receivers need it to verify webhooks; see package client/webhook. Like
// [Client.CreateKey] it's only retried if it's certain that nothing was created.
func (c *Client) CreateWebhook(ctx context.Context, webhook animalstore.NewWebhook, options ...CallOption) (WebhookWithSecret, error) {
	op := operation{name: "createWebhook", method: http.MethodPost, path: "/webhooks", body: webhook, repeat: harmful, secret: true}
	return receive(ctx, c, op, options, isWebhookWithSecret)
}

// GetWebhook returns one webhook.
func (c *Client) GetWebhook(ctx context.Context, id int64, options ...CallOption) (animalstore.Webhook, error) {
	return receive(ctx, c, operation{name: "getWebhook", method: http.MethodGet, path: webhookPath(id)}, options, isWebhook)
}

// UpdateWebhook changes a webhook and returns it. Setting the state to active resumes a
// disabled or paused webhook; it never gets the events from in between.
func (c *Client) UpdateWebhook(ctx context.Context, id int64, patch animalstore.WebhookPatch, options ...CallOption) (animalstore.Webhook, error) {
	op := operation{name: "updateWebhook", method: http.MethodPatch, path: webhookPath(id), body: patch, conditional: true}
	return receive(ctx, c, op, options, isWebhook)
}

// DeleteWebhook removes a webhook with its deliveries.
func (c *Client) DeleteWebhook(ctx context.Context, id int64, options ...CallOption) error {
	return c.receiveNothing(ctx, operation{name: "deleteWebhook", method: http.MethodDelete, path: webhookPath(id),
		conditional: true}, options)
}

// RotateWebhook gives a webhook a new secret. During the grace period, in whole
// seconds, deliveries are also signed with the previous one. After [ErrOutcomeUnknown],
// rotate it again.
func (c *Client) RotateWebhook(ctx context.Context, id int64, grace time.Duration, options ...CallOption) (WebhookWithSecret, error) {
	return receive(ctx, c, rotation("rotateWebhook", webhookPath(id), grace), options, isWebhookWithSecret)
}

// PingWebhook sends a message of type webhook.ping to a webhook. The delivery shows the
// outcome later.
func (c *Client) PingWebhook(ctx context.Context, id int64, options ...CallOption) (animalstore.Delivery, error) {
	return c.PingWebhookAs(ctx, id, animalstore.WebhookPing, options...)
}

// PingWebhookAs is [Client.PingWebhook] with sample data for a type of event, whether or not
// the webhook selects that type.
func (c *Client) PingWebhookAs(ctx context.Context, id int64, eventType animalstore.EventType, options ...CallOption) (animalstore.Delivery, error) {
	op := operation{name: "pingWebhook", method: http.MethodPost, path: webhookPath(id) + "/ping", repeat: harmful, accepted: true}
	if eventType != animalstore.WebhookPing {
		op.body = struct {
			Type animalstore.EventType `json:"type"`
		}{eventType}
	}
	return receive(ctx, c, op, options, isDelivery)
}

// ListDeliveries lists the deliveries to a webhook, newest first.
func (c *Client) ListDeliveries(ctx context.Context, webhookID int64, q animalstore.DeliveryQuery,
	options ...CallOption) iter.Seq2[animalstore.Delivery, error] {
	return list(ctx, c, "listDeliveries", webhookPath(webhookID)+"/deliveries", q.Values(), options, isDelivery)
}

// GetDelivery returns a delivery to a webhook and the body that is sent.
func (c *Client) GetDelivery(ctx context.Context, webhookID, id int64, options ...CallOption) (animalstore.DeliveryWithBody, error) {
	op := operation{name: "getDelivery", method: http.MethodGet, path: deliveryPath(webhookID, id)}
	return receive(ctx, c, op, options, func(d *animalstore.DeliveryWithBody) bool { return isDelivery(&d.Delivery) && len(d.Body) > 0 })
}

// RetryDelivery makes a delivery due at once, regardless of its state.
func (c *Client) RetryDelivery(ctx context.Context, webhookID, id int64, options ...CallOption) (animalstore.Delivery, error) {
	op := operation{name: "retryDelivery", method: http.MethodPost, path: deliveryPath(webhookID, id) + "/retry", accepted: true}
	return receive(ctx, c, op, options, isDelivery)
}

// RetryDeliveries makes all deliveries to a webhook that match due at once, and returns how
// many. For very many it sends several requests. If it gives up before the last of them, the error
// wraps [ErrOutcomeUnknown], and repeating the call within ten minutes continues it.
func (c *Client) RetryDeliveries(ctx context.Context, webhookID int64, which animalstore.DeliveryRetry, options ...CallOption) (int, error) {
	op := operation{name: "retryDeliveries", method: http.MethodPost,
		path: webhookPath(webhookID) + "/deliveries/retry", body: which, accepted: true, partial: true}
	retried, err := receive(ctx, c, op, options, func(r *animalstore.RetriedDeliveries) bool { return r.Deliveries >= 0 })
	return retried.Deliveries, err
}

func webhookPath(id int64) string { return fmt.Sprintf("/webhooks/%d", id) }

func deliveryPath(webhookID, id int64) string {
	return fmt.Sprintf("%s/deliveries/%d", webhookPath(webhookID), id)
}

func isWebhook(w *animalstore.Webhook) bool { return w.ID > 0 && w.URL != "" && w.State != "" }

func isWebhookWithSecret(w *WebhookWithSecret) bool { return isWebhook(&w.Webhook) && w.Secret != "" }

func isDelivery(d *animalstore.Delivery) bool { return d.ID > 0 && d.Type != "" && d.State != "" }
