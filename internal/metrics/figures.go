package metrics

import "github.com/prometheus/client_golang/prometheus"

// Kind says how a figure changes over time.
type Kind prometheus.ValueType

const (
	Counter = Kind(prometheus.CounterValue) // only grows
	Gauge   = Kind(prometheus.GaugeValue)
)

// Figure is one value of a metric.
type Figure struct {
	Metric string
	Help   string
	Kind   Kind
	Value  float64
	Label  string // the name of its label; "" for none
	Of     string // the value of its label; the number of values must be bounded
}

// AddFigures adds metrics that are read at every scrape. read must be cheap. It may
// return different figures each time, but always the same help for the same metric.
func (m *Metrics) AddFigures(read func() []Figure) { m.registry.MustRegister(figures(read)) }

type figures func() []Figure

// Describe sends nothing, so that the figures may vary.
func (figures) Describe(chan<- *prometheus.Desc) {}

func (read figures) Collect(to chan<- prometheus.Metric) {
	for _, f := range read() {
		labels := prometheus.Labels{}
		if f.Label != "" {
			labels[f.Label] = f.Of
		}
		to <- prometheus.MustNewConstMetric(prometheus.NewDesc(f.Metric, f.Help, nil, labels), prometheus.ValueType(f.Kind), f.Value)
	}
}
