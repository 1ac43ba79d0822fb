package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"
)

const deliveriesWork = "deliveries"

// measureDeliveries adds 10,000 pets in batches and measures how fast a webhook gets their
// events. Its receiver responds at once.
func (b *bench) measureDeliveries(engine string, s *server) cost {
	rounds, pets, size := b.amount(3), b.amount(10_000), b.amount(100)
	received := make(chan struct{}, pets)
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { received <- struct{}{} }))
	defer receiver.Close()
	s.send(http.MethodPost, "/v1/webhooks", fmt.Sprintf(`{"url":%q,"types":["pet.created"]}`, receiver.URL))
	batch := `{"pets":[` + strings.Repeat(newPet+",", size-1) + newPet + `]}`
	all := cost{what: fmt.Sprintf("10,000 deliveries to one quick receiver, %s: deliveries per second", engine)}
	for range rounds {
		began := time.Now()
		for range pets / size {
			s.send(http.MethodPost, s.api.create+"/batch", batch)
		}
		created, longest := time.Since(began), time.Duration(0)
		for range pets {
			waited := time.Now()
			select {
			case <-received:
			case <-b.ctx.Done():
				check(b.ctx.Err())
			}
			longest = max(longest, time.Since(waited))
		}
		progress("deliveries, %s: created in %v, longest pause %v", engine, created, longest)
		all.ours = append(all.ours, float64(pets)/time.Since(began).Seconds())
	}
	return all
}
