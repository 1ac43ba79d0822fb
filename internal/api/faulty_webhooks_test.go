package api_test

import (
	"context"

	"animalstore"
	"animalstore/internal/db"
)

func (f *faultyDB) CreateWebhook(ctx context.Context, w animalstore.NewWebhook, secret string, at animalstore.Time) (webhook animalstore.Webhook, err error) {
	if err = f.hit(ctx, "CreateWebhook"); err != nil {
		return
	}
	return f.DB.CreateWebhook(ctx, w, secret, at)
}

func (f *faultyDB) Webhook(ctx context.Context, id int64) (webhook animalstore.Webhook, err error) {
	if err = f.hit(ctx, "Webhook"); err != nil {
		return
	}
	return f.DB.Webhook(ctx, id)
}

func (f *faultyDB) Webhooks(ctx context.Context, q db.WebhookQuery) (webhooks []animalstore.Webhook, err error) {
	if err = f.hit(ctx, "Webhooks"); err != nil {
		return
	}
	return f.DB.Webhooks(ctx, q)
}

func (f *faultyDB) UpdateWebhook(ctx context.Context, id int64, change func(*animalstore.Webhook) error) (webhook animalstore.Webhook, err error) {
	if err = f.hit(ctx, "UpdateWebhook"); err != nil {
		return
	}
	return f.DB.UpdateWebhook(ctx, id, change)
}

func (f *faultyDB) DeleteWebhook(ctx context.Context, id int64, check func(*animalstore.Webhook) error) (err error) {
	if err = f.hit(ctx, "DeleteWebhook"); err != nil {
		return
	}
	return f.DB.DeleteWebhook(ctx, id, check)
}

func (f *faultyDB) RotateWebhook(ctx context.Context, id int64, secret string, until animalstore.Time, check func(*animalstore.Webhook) error) (webhook animalstore.Webhook, err error) {
	if err = f.hit(ctx, "RotateWebhook"); err != nil {
		return
	}
	return f.DB.RotateWebhook(ctx, id, secret, until, check)
}

func (f *faultyDB) PingWebhook(ctx context.Context, id int64, at animalstore.Time) (delivery animalstore.Delivery, err error) {
	if err = f.hit(ctx, "PingWebhook"); err != nil {
		return
	}
	return f.DB.PingWebhook(ctx, id, at)
}

func (f *faultyDB) Deliveries(ctx context.Context, q db.DeliveryQuery) (deliveries []animalstore.Delivery, err error) {
	if err = f.hit(ctx, "Deliveries"); err != nil {
		return
	}
	return f.DB.Deliveries(ctx, q)
}

func (f *faultyDB) RetryDelivery(ctx context.Context, webhookID, id int64, at animalstore.Time) (delivery animalstore.Delivery, err error) {
	if err = f.hit(ctx, "RetryDelivery"); err != nil {
		return
	}
	return f.DB.RetryDelivery(ctx, webhookID, id, at)
}
