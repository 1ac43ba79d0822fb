package api

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/keys"
	"animalstore/internal/strictjson"
)

// webhookWithSecret is a webhook in the only responses that show its secret.
type webhookWithSecret struct {
	animalstore.Webhook
	Secret string `json:"secret"`
}

// listWebhooks serves GET /v1/webhooks.
func (s *Server) listWebhooks(w http.ResponseWriter, r *request) error {
	list := func(ctx context.Context, _ noFilters, page db.Page) ([]animalstore.Webhook, error) {
		return s.DB.Webhooks(ctx, page)
	}
	return serveList(w, r, "/v1/webhooks", parseNoFilters, list, func(w *animalstore.Webhook) int64 { return w.ID })
}

// createWebhook serves POST /v1/webhooks.
func (s *Server) createWebhook(w http.ResponseWriter, r *request) error {
	in, err := decode(r, strictjson.DecodeNewWebhook)
	if err != nil {
		return err
	}
	if err := s.CheckWebhookURL(r.Context(), in.URL); err != nil {
		return err
	}
	secret := keys.MintWebhookSecret()
	webhook, err := s.DB.CreateWebhook(r.Context(), in, secret, animalstore.At(s.Now()))
	if err != nil {
		return err
	}
	setLocation(w, "/v1/webhooks", webhook.ID)
	return writeSecret(w, http.StatusCreated, webhookWithSecret{webhook, secret})
}

// getWebhook serves GET /v1/webhooks/{webhookId}.
func (s *Server) getWebhook(w http.ResponseWriter, r *request) error {
	webhook, err := atPath(r, &webhookKind, s.DB.Webhook)
	if err != nil {
		return err
	}
	return writeWebhook(w, r, webhook)
}

// updateWebhook serves PATCH /v1/webhooks/{webhookId}.
func (s *Server) updateWebhook(w http.ResponseWriter, r *request) error {
	patch, err := decode(r, strictjson.DecodeWebhookPatch)
	if err != nil {
		return err
	}
	if patch.URL != nil {
		if err := s.CheckWebhookURL(r.Context(), *patch.URL); err != nil {
			return err
		}
	}
	webhook, err := atPath(r, &webhookKind, func(ctx context.Context, id int64) (animalstore.Webhook, error) {
		return s.DB.UpdateWebhook(ctx, id, func(w *animalstore.Webhook) error {
			if err := r.checkIfMatch(webhookTag(*w)); err != nil {
				return err
			}
			return patch.Apply(w)
		})
	})
	if err != nil {
		return err
	}
	return writeWebhook(w, r, webhook)
}

// deleteWebhook serves DELETE /v1/webhooks/{webhookId}.
func (s *Server) deleteWebhook(w http.ResponseWriter, r *request) error {
	return deleteAtPath(w, r, &webhookKind, func(ctx context.Context, id int64) error {
		return s.DB.DeleteWebhook(ctx, id, func(w *animalstore.Webhook) error { return r.checkIfMatch(webhookTag(*w)) })
	})
}

// rotateWebhook serves POST /v1/webhooks/{webhookId}/rotate. The body is optional.
func (s *Server) rotateWebhook(w http.ResponseWriter, r *request) error {
	grace, err := decodeGrace(r)
	if err != nil {
		return err
	}
	id, err := webhookKind.pathID(r)
	if err != nil {
		return err
	}
	secret := keys.MintWebhookSecret()
	until := animalstore.At(s.Now().Add(grace))
	webhook, err := s.DB.RotateWebhook(r.Context(), id, secret, until,
		func(w *animalstore.Webhook) error { return r.checkIfMatch(webhookTag(*w)) })
	if err != nil {
		return webhookKind.notFound(err)
	}
	return writeSecret(w, http.StatusOK, webhookWithSecret{webhook, secret})
}

// decodeGrace reads the optional body of a rotation.
func decodeGrace(r *request) (time.Duration, error) {
	grace, err := decodeOptional(r, strictjson.DecodeGraceSeconds)
	switch {
	case err != nil:
		return 0, err
	case grace == nil:
		return defaultGrace * time.Second, nil
	case *grace < 0 || *grace > maxGrace:
		return 0, animalstore.Errorf(animalstore.ValidationFailed, "graceSeconds must be from 0 to %d", maxGrace)
	}
	return time.Duration(*grace) * time.Second, nil
}

// pingWebhook serves POST /v1/webhooks/{webhookId}/ping. The body is optional.
func (s *Server) pingWebhook(w http.ResponseWriter, r *request) error {
	eventType, err := decodeOptional(r, strictjson.DecodePingType)
	if err != nil {
		return err
	}
	id, err := webhookKind.pathID(r)
	if err != nil {
		return err
	}
	delivery, err := s.DB.PingWebhook(r.Context(), id, cmp.Or(eventType, animalstore.WebhookPing), animalstore.At(s.Now()))
	if err != nil {
		return webhookKind.notFound(err)
	}
	return writeJSON(w, http.StatusAccepted, delivery)
}

// listDeliveries serves GET /v1/webhooks/{webhookId}/deliveries.
func (s *Server) listDeliveries(w http.ResponseWriter, r *request) error {
	list := func(ctx context.Context, q animalstore.DeliveryQuery, page db.Page) ([]animalstore.Delivery, error) {
		webhookID, err := webhookKind.pathID(r)
		if err != nil {
			return nil, err
		}
		all, err := s.DB.Deliveries(ctx, webhookID, q, page)
		return all, webhookKind.notFound(err)
	}
	return serveList(w, r, r.URL.Path, animalstore.ParseDeliveryQuery, list, func(d *animalstore.Delivery) int64 { return d.ID })
}

// getDelivery serves GET /v1/webhooks/{webhookId}/deliveries/{deliveryId}.
func (s *Server) getDelivery(w http.ResponseWriter, r *request) error {
	webhookID, id, err := s.deliveryAtPath(r)
	if err != nil {
		return err
	}
	delivery, err := s.DB.Delivery(r.Context(), webhookID, id)
	if err != nil {
		return deliveryKind.notFound(err)
	}
	return writeResource(w, r, http.StatusOK, delivery)
}

// deliveryAtPath returns the ids in the path of a delivery, if the webhook exists.
func (s *Server) deliveryAtPath(r *request) (webhookID, id int64, err error) {
	webhook, err := atPath(r, &webhookKind, s.DB.Webhook)
	if err != nil {
		return 0, 0, err
	}
	id, err = deliveryKind.id(r.second)
	return webhook.ID, id, err
}

// retryDelivery serves POST /v1/webhooks/{webhookId}/deliveries/{deliveryId}/retry.
func (s *Server) retryDelivery(w http.ResponseWriter, r *request) error {
	webhookID, id, err := s.deliveryAtPath(r)
	if err != nil {
		return err
	}
	delivery, err := s.DB.RetryDelivery(r.Context(), webhookID, id, animalstore.At(s.Now()))
	if err != nil {
		return deliveryKind.notFound(err)
	}
	return writeJSON(w, http.StatusAccepted, delivery)
}

// webhookTag is the ETag of a webhook. It leaves out what every delivery changes.
func webhookTag(w animalstore.Webhook) string { return etagOf(encode(w.Settings())) }

func writeWebhook(w http.ResponseWriter, r *request, webhook animalstore.Webhook) error {
	return taggedEntity(encode(webhook), webhookTag(webhook)).write(w, r, http.StatusOK)
}
