package server

import (
	"context"
	"time"

	"animalstore"
	"animalstore/internal/metrics"
	"animalstore/internal/webhook"
)

// webhookGrace is how long deliveries under way may take when the server stops.
const webhookGrace = 5 * time.Second

// startWebhooks starts what delivers events to webhooks.
func (s *Server) startWebhooks() {
	networks := webhook.NewNetworks(s.cfg.WebhookNetworks)
	s.checkWebhookURL = networks.Check
	if s.cfg.CheckWebhookURL != nil {
		s.checkWebhookURL = s.cfg.CheckWebhookURL
	}
	s.stopWebhooks = func() error { return nil }
	if s.cfg.NoBackground {
		return
	}
	var observer webhook.Observer = ignoreWebhooks{}
	if s.metrics != nil {
		observer = s.metrics
	}
	worker := webhook.NewWorker(webhook.Config{
		Store: s.db,
		Sender: webhook.NewSender(webhook.SenderConfig{
			Networks:  networks,
			UserAgent: "animalstore/" + s.cfg.Version,
			TLS:       s.cfg.WebhookTLS,
			Now:       s.cfg.Now,
		}),
		Observer: observer,
		Log:      s.cfg.Log,
		Now:      s.cfg.Now,
		Grace:    webhookGrace,
	})
	s.stopWebhooks = runInBackground(worker.Run)
	s.closers = append(s.closers, s.stopWebhooks)
}

type ignoreWebhooks struct{}

func (ignoreWebhooks) WebhookAttempt(string) {}
func (ignoreWebhooks) WebhookDisabled()      {}

// webhookFigures are about webhooks. If the database doesn't respond, there are none.
func (s *Server) webhookFigures() []metrics.Figure {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	now := s.cfg.Now()
	stats, err := s.db.WebhookStats(ctx, animalstore.At(now))
	if err != nil {
		return nil
	}
	age := gauge("animalstore_webhook_oldest_due_seconds", "For how long the delivery is due that waits longest; 0 if none is.", 0)
	if !stats.OldestDue.IsZero() {
		age.Value = max(0, now.Sub(stats.OldestDue.Time).Seconds())
	}
	figures := []metrics.Figure{age}
	for name, n := range map[string]int{"active": stats.Active, "paused": stats.Paused, "disabled": stats.Disabled} {
		f := gauge("animalstore_webhooks", "Webhooks by state.", n)
		f.Name = name
		figures = append(figures, f)
	}
	return figures
}
