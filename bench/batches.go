package main

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

const batchesWork = "batches"

// measureBatches adds 10,000 pets in batches of 100 and as many one by one, by a caller that
// sends one request at a time.
func (b *bench) measureBatches(engine string, s *server) cost {
	rounds, pets, size := b.amount(10), b.amount(1_000), b.amount(100)
	batch := `{"pets":[` + strings.Repeat(newPet+",", size-1) + newPet + `]}`
	perSecond := func(requests int, uri, body string) float64 {
		began := time.Now()
		for range requests {
			s.send(http.MethodPost, uri, body)
		}
		return float64(pets) / time.Since(began).Seconds()
	}
	all := cost{fmt.Sprintf("10,000 pets in batches of 100, %s: pets per second", engine), "one by one", nil, nil, barFor(b.command, batchesWork, "")}
	for range rounds {
		all.other = append(all.other, perSecond(pets, s.api.create, newPet))
		all.ours = append(all.ours, perSecond(pets/size, s.api.create+"/batch", batch))
	}
	return all
}
