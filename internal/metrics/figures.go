package metrics

import "github.com/prometheus/client_golang/prometheus"

// Figure is one value of a metric.
type Figure = prometheus.Metric

// Counter is a value that only grows.
func Counter(name, help string, value float64) Figure {
	return prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, nil, nil), prometheus.CounterValue, value)
}

// Gauge is a value that may shrink, perhaps with the name and the value of a label. The number
// of values must be bounded.
func Gauge(name, help string, value float64, label ...string) Figure {
	labels := prometheus.Labels{}
	if len(label) > 0 {
		labels[label[0]] = label[1]
	}
	return prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, nil, labels), prometheus.GaugeValue, value)
}

// AddFigures adds metrics that are read at every scrape. read must be cheap. It may
// return different figures each time, but always the same help for the same metric.
func (m *Metrics) AddFigures(read func() []Figure) { m.registry.MustRegister(figures(read)) }

type figures func() []Figure

// Describe sends nothing, so that the figures may vary.
func (figures) Describe(chan<- *prometheus.Desc) {}

func (read figures) Collect(to chan<- prometheus.Metric) {
	for _, f := range read() {
		to <- f
	}
}
