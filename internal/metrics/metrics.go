// Package metrics counts requests, errors and limiter decisions, and serves the
// counts to Prometheus.
package metrics

import (
	"net/http"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"animalstore"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics observes the requests of one server.
type Metrics struct {
	registry *prometheus.Registry
	inFlight atomic.Int64
	requests *prometheus.CounterVec
	took     *prometheus.HistogramVec

	decisions map[animalstore.Code]prometheus.Counter
	failures  *prometheus.CounterVec
	attempts  *prometheus.CounterVec // to deliver to webhooks
	disabled  prometheus.Counter     // webhooks
}

// unmatched is the route of requests for paths that don't exist.
const unmatched = "unmatched"

// New returns the metrics of a server of the given version.
func New(version string) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "animalstore_http_requests_total",
			Help: "Requests that got a response.",
		}, []string{"method", "route", "status"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "animalstore_http_request_duration_seconds",
			Help:    "Time from the first line of a request to the end of its response.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}, []string{"method", "route"}),
		decisions: map[animalstore.Code]prometheus.Counter{},
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "animalstore_http_errors_total",
			Help: "Error responses by code. An unreachable database shows as unavailable, a full disk as storage_full.",
		}, []string{"code"}),
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "animalstore_webhook_attempts_total",
			Help: "Webhook delivery attempts by outcome: delivered, retry (will be repeated) or failed (the last one).",
		}, []string{"outcome"}),
		disabled: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "animalstore_webhooks_disabled_total",
			Help: "Webhooks that this instance disabled, because their receivers kept failing or are gone.",
		}),
	}
	decisions := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "animalstore_limit_decisions_total",
		Help: "Rate limit decisions for requests with a valid key.",
	}, []string{"outcome"})
	m.decisions[""] = decisions.WithLabelValues("admitted")
	for _, code := range []animalstore.Code{animalstore.RateLimitExceeded, animalstore.DailyQuotaExceeded, animalstore.KeyBanned} {
		m.decisions[code] = decisions.WithLabelValues(string(code))
	}
	for _, code := range animalstore.Codes {
		m.failures.WithLabelValues(string(code)) // shown as 0 before the first
	}
	for _, outcome := range []string{"delivered", "retry", "failed"} {
		m.attempts.WithLabelValues(outcome)
	}
	m.registry.MustRegister(
		m.requests, m.took, decisions, m.failures, m.attempts, m.disabled,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "animalstore_http_requests_in_flight",
			Help: "Requests in progress.",
		}, func() float64 { return float64(m.inFlight.Load()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name:        "animalstore_build_info",
			Help:        "Always 1; the labels identify the build.",
			ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version()},
		}, func() float64 { return 1 }),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

// Handler serves the metrics in the format of Prometheus.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry})
}

// Begin counts a request as in progress.
func (m *Metrics) Begin() { m.inFlight.Add(1) }

// End counts a finished request. The route is the pattern of its path, or "" if
// the path doesn't exist.
func (m *Metrics) End(method, route string, status int, took time.Duration) {
	m.inFlight.Add(-1)
	if route == "" {
		route = unmatched
	}
	m.requests.WithLabelValues(method, route, strconv.Itoa(status)).Inc()
	m.took.WithLabelValues(method, route).Observe(took.Seconds())
}

// Limited counts a decision of the limiter: the code it refused a request with,
// or "" if it admitted it.
func (m *Metrics) Limited(code animalstore.Code) { m.decisions[code].Inc() }

// Failed counts an error response.
func (m *Metrics) Failed(code animalstore.Code) { m.failures.WithLabelValues(string(code)).Inc() }

// WebhookAttempt counts an attempt to deliver.
func (m *Metrics) WebhookAttempt(outcome string) { m.attempts.WithLabelValues(outcome).Inc() }

// WebhookDisabled counts a webhook that was disabled.
func (m *Metrics) WebhookDisabled() { m.disabled.Inc() }
