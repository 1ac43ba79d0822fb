package metrics

import "github.com/prometheus/client_golang/prometheus"

// webhookCounters count deliveries to webhooks.
type webhookCounters struct {
	attempts map[string]prometheus.Counter
	disabled prometheus.Counter
}

func newWebhookCounters(registry *prometheus.Registry) webhookCounters {
	attempts := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "animalstore_webhook_attempts_total",
		Help: "Webhook delivery attempts by outcome: delivered, retry (will be repeated) or failed (the last one).",
	}, []string{"outcome"})
	w := webhookCounters{map[string]prometheus.Counter{}, prometheus.NewCounter(prometheus.CounterOpts{
		Name: "animalstore_webhooks_disabled_total",
		Help: "Webhooks that this instance disabled, because their receivers kept failing or are gone.",
	})}
	for _, outcome := range []string{"delivered", "retry", "failed"} {
		w.attempts[outcome] = attempts.WithLabelValues(outcome)
	}
	registry.MustRegister(attempts, w.disabled)
	return w
}

// WebhookAttempt counts an attempt to deliver.
func (m *Metrics) WebhookAttempt(outcome string) {
	if c := m.webhooks.attempts[outcome]; c != nil {
		c.Inc()
	}
}

// WebhookDisabled counts a webhook that was disabled.
func (m *Metrics) WebhookDisabled() { m.webhooks.disabled.Inc() }
