package sqlite

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
)

// BenchmarkEvents reads pages of events, as a request and as the hub does.
func BenchmarkEvents(b *testing.B) {
	d, err := Open(b.Context(), filepath.Join(b.TempDir(), "store.db"), Options{Serve: true, Tuning: Tuning{NoSync: true}})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	createPets(b, d, 2000)
	for _, limit := range []int{20, 500} {
		b.Run(fmt.Sprint(limit), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if events, _, err := d.Events(b.Context(), db.EventQuery{After: 1000, Limit: limit}); err != nil || len(events) != limit {
					b.Fatal(len(events), err)
				}
			}
		})
	}
}

func createPets(b *testing.B, d *DB, n int) {
	b.Helper()
	ctx := db.WithActor(b.Context(), db.Actor{KeyID: 1, RequestID: "01KA0000000000000000000000"})
	for range n {
		if _, _, err := d.CreatePet(ctx, animalstore.NewPet{Name: "Rex the dog 4711", CategoryID: 7}, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDeliveries is what the database does for each delivery of a backlog.
func BenchmarkDeliveries(b *testing.B) {
	d, err := Open(b.Context(), filepath.Join(b.TempDir(), "store.db"), Options{Serve: true, Tuning: Tuning{NoSync: true}})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	now := animalstore.At(time.Now())
	lease := animalstore.At(now.Add(time.Minute))
	if _, err := d.CreateWebhook(b.Context(), animalstore.NewWebhook{URL: "https://example.com", Types: "pet.*"}, "whsec_b25l", now); err != nil {
		b.Fatal(err)
	}
	const batch = 400
	var due []animalstore.DueDelivery
	var dispatching, finishing time.Duration
	n := 0
	for b.Loop() {
		b.StopTimer()
		createPets(b, d, batch)
		b.StartTimer()
		began := time.Now()
		if _, err := d.DispatchEvents(b.Context(), now, 500); err != nil {
			b.Fatal(err)
		}
		dispatching += time.Since(began)
		began = time.Now()
		if due, err = d.ClaimDeliveries(b.Context(), now, lease); err != nil {
			b.Fatal(err)
		}
		for len(due) > 0 {
			results := make([]animalstore.DeliveryResult, len(due))
			for i := range due {
				results[i] = due[i].Result(animalstore.Attempt{Time: now, Status: new(200), DurationMs: 3}, 0.5, 0)
			}
			if due, _, err = d.FinishDeliveries(b.Context(), results, now, lease); err != nil {
				b.Fatal(err)
			}
		}
		finishing += time.Since(began)
		n += batch
	}
	b.ReportMetric(float64(dispatching.Microseconds())/float64(n), "µs/dispatched")
	b.ReportMetric(float64(finishing.Microseconds())/float64(n), "µs/finished")
}
