package server

import (
	"time"

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
		}),
		Observer: observer,
		Log:      s.cfg.Log,
		Now:      s.cfg.Now,
		Grace:    webhookGrace,

		SharedClock: !s.ownClock,
	})
	s.hub.Watch(worker.Notify)
	s.stopWebhooks = runInBackground(worker.Run)
	s.closers = append(s.closers, s.stopWebhooks)
}

type ignoreWebhooks struct{}

func (ignoreWebhooks) WebhookAttempt(string) {}
func (ignoreWebhooks) WebhookDisabled()      {}
