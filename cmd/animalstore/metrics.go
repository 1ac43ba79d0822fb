package main

import (
	"maps"
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"animalstore"
	"animalstore/internal/ratelimit"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics are what a server tells of itself on /metrics. It is the
// [api.Observer]: a request costs it a look into each of two maps that nobody
// changes, and a few additions, but neither memory nor a lock.
type metrics struct {
	registry *prometheus.Registry
	inFlight atomic.Int64
	requests *prometheus.CounterVec
	took     *prometheus.HistogramVec

	// series are those of requests so far. A new one comes with a new map.
	series    atomic.Pointer[map[seriesKey]series]
	newSeries sync.Mutex

	decisions map[animalstore.Code]prometheus.Counter
	failures  map[animalstore.Code]prometheus.Counter
}

type seriesKey struct {
	method, route string
	status        int
}

type series struct {
	requests prometheus.Counter
	took     prometheus.Observer
}

// unmatched stands for every path at which there is nothing.
const unmatched = "unmatched"

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "animalstore_http_requests_total",
			Help: "Requests that were answered.",
		}, []string{"method", "route", "status"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "animalstore_http_request_duration_seconds",
			Help:    "Time from a request's first line to the end of its answer.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}, []string{"method", "route"}),
		decisions: map[animalstore.Code]prometheus.Counter{},
		failures:  map[animalstore.Code]prometheus.Counter{},
	}
	m.series.Store(&map[seriesKey]series{})
	decisions := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "animalstore_limit_decisions_total",
		Help: "What the limiter said to requests with a valid key.",
	}, []string{"outcome"})
	m.decisions[""] = decisions.WithLabelValues("admitted")
	for _, code := range []animalstore.Code{animalstore.RateLimitExceeded, animalstore.DailyQuotaExceeded, animalstore.KeyBanned} {
		m.decisions[code] = decisions.WithLabelValues(string(code))
	}
	failures := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "animalstore_http_errors_total",
		Help: "Errors that were answered, by their code. A database that is out of reach shows as unavailable, a full one as storage_full.",
	}, []string{"code"})
	for _, code := range animalstore.Codes {
		m.failures[code] = failures.WithLabelValues(string(code))
	}
	m.registry.MustRegister(
		m.requests, m.took, decisions, failures,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "animalstore_http_requests_in_flight",
			Help: "Requests that are being answered.",
		}, func() float64 { return float64(m.inFlight.Load()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name:        "animalstore_build_info",
			Help:        "Always 1; the labels tell what runs.",
			ConstLabels: prometheus.Labels{"version": versionString(), "goversion": runtime.Version()},
		}, func() float64 { return 1 }),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

// watchRedis adds what a shared limiter tells of itself.
func (m *metrics) watchRedis(r *ratelimit.Redis) {
	counter := func(name, help string, value func(ratelimit.RedisStats) int64) {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help},
			func() float64 { return float64(value(r.Stats())) }))
	}
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "animalstore_limit_fallback",
		Help: "1 while Redis does not answer and this instance limits by itself.",
	}, func() float64 {
		if r.Stats().Fallback {
			return 1
		}
		return 0
	}))
	counter("animalstore_limit_shared_decisions_total", "Requests that were decided by Redis.", func(s ratelimit.RedisStats) int64 { return s.Shared })
	counter("animalstore_limit_fallback_decisions_total", "Requests that this instance decided by itself.", func(s ratelimit.RedisStats) int64 { return s.FallbackDecisions })
	counter("animalstore_limit_fallbacks_total", "Times that Redis went away.", func(s ratelimit.RedisStats) int64 { return s.Outages })
	counter("animalstore_redis_failures_total", "Calls that Redis did not answer, or not in time.", func(s ratelimit.RedisStats) int64 { return s.Failures })
	counter("animalstore_redis_forgotten_keys_total", "Keys that Redis had forgotten and was told of again.", func(s ratelimit.RedisStats) int64 { return s.Reseeds })
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry})
}

func (m *metrics) Begin() { m.inFlight.Add(1) }

func (m *metrics) End(method, route string, status int, took time.Duration) {
	m.inFlight.Add(-1)
	if route == "" {
		route = unmatched
	}
	key := seriesKey{method, route, status}
	s, ok := (*m.series.Load())[key]
	if !ok {
		s = m.addSeries(key)
	}
	s.requests.Inc()
	s.took.Observe(took.Seconds())
}

// addSeries makes the series of a kind of request that did not come before.
func (m *metrics) addSeries(key seriesKey) series {
	m.newSeries.Lock()
	defer m.newSeries.Unlock()
	s := series{
		m.requests.WithLabelValues(key.method, key.route, strconv.Itoa(key.status)),
		m.took.WithLabelValues(key.method, key.route),
	}
	next := maps.Clone(*m.series.Load())
	next[key] = s
	m.series.Store(&next)
	return s
}

func (m *metrics) Limited(code animalstore.Code) { count(m.decisions, code) }

func (m *metrics) Failed(code animalstore.Code) { count(m.failures, code) }

func count(counters map[animalstore.Code]prometheus.Counter, code animalstore.Code) {
	if c := counters[code]; c != nil {
		c.Inc()
	}
}
