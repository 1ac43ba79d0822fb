package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Backups is the state of the backups that a server makes.
type Backups struct {
	At       time.Time // of the newest one; zero if there is none
	Size     int64     // of the newest one
	Failures int64     // since the server started
}

// WatchBackups adds the metrics of backups, read from stats at every scrape.
func (m *Metrics) WatchBackups(stats func() Backups) {
	m.registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "animalstore_backup_last_success_timestamp_seconds",
			Help: "When the newest backup began, in Unix time; 0 if there is none.",
		}, func() float64 {
			if at := stats().At; !at.IsZero() {
				return float64(at.Unix())
			}
			return 0
		}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "animalstore_backup_last_size_bytes",
			Help: "Size of the newest backup.",
		}, func() float64 { return float64(stats().Size) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "animalstore_backup_failures_total",
			Help: "Backups that failed since the server started.",
		}, func() float64 { return float64(stats().Failures) }),
	)
}
