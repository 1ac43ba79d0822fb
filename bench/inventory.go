package main

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	inventoryRate    = 1000 // requests per second
	inventorySenders = 20   // connections that they are sent over
	// categoriesCounted is the number of different categories that are counted. Those of a
	// sample store have lower ids.
	categoriesCounted = 37
)

// inventory compares the p99 of other requests while inventories are requested with their
// p99 on the same server without that.
func inventory(b *bench) []*table {
	b.prepare()
	var all []cost
	for _, engine := range b.engines {
		s, suffix := b.startInventory(engine)
		alone, beside := *s, *s
		alone.name, beside.name, beside.during = uncounted, "beside inventories", s.requestInventories
		for _, name := range []string{"first", "cursor", "create16"} {
			w := workloadNamed(name)
			results := b.race(w, &beside, &alone)
			all = append(all, cost{fmt.Sprintf("%s%s beside %d inventories a second: p99 ms", w.title, suffix, inventoryRate), uncounted,
				figures(results[1].turns, turn.p99Millis), figures(results[0].turns, turn.p99Millis), barFor(b.command, name, uncounted)})
		}
		s.stop()
	}
	return []*table{costTable(all)}
}

// startInventory starts the server whose pets are counted. The suffix names its engine.
func (b *bench) startInventory(engine string) (s *server, suffix string) {
	if engine == onPostgres {
		pg := findPostgres(b)
		cluster, url := pg.runSeeded(b.pets, false)
		return pg.startBuild(b.withKeys("ours", url, b.pets, 1), b.release, url, cluster), ", PostgreSQL"
	}
	described, database := b.seededCopy("ours", 1)
	return b.startBuild(described, b.release, database, "--ops-listen", ""), ""
}

// requestInventories requests counts of the whole store and of its categories until it is
// stopped.
func (s *server) requestInventories() (stop func()) {
	callers := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: inventorySenders}}
	ended := make(chan struct{})
	var sent, refused, failed atomic.Int64
	var senders sync.WaitGroup
	for range inventorySenders {
		senders.Go(func() {
			tick := time.NewTicker(time.Second * inventorySenders / inventoryRate)
			defer tick.Stop()
			for {
				select {
				case <-ended:
					return
				case <-tick.C:
				}
				uri := "/v1/store/inventory"
				if n := sent.Add(1); n%2 == 0 {
					uri += fmt.Sprintf("?categoryId=%d", n/2%categoriesCounted)
				}
				switch status, err := s.requestInventory(callers, uri); {
				case status == http.StatusServiceUnavailable:
					refused.Add(1)
				case err != nil || status != http.StatusOK:
					failed.Add(1)
				}
			}
		})
	}
	began := time.Now()
	return func() {
		close(ended)
		senders.Wait()
		callers.CloseIdleConnections()
		// A count that a saturated machine can't finish in time is refused.
		progress("%.0f inventories a second, %d of %d refused", float64(sent.Load())/time.Since(began).Seconds(), refused.Load(), sent.Load())
		if failed.Load() > 0 {
			check(fmt.Errorf("%d of %d inventories failed", failed.Load(), sent.Load()))
		}
	}
}

func (s *server) requestInventory(callers *http.Client, uri string) (status int, err error) {
	r := must(http.NewRequest(http.MethodGet, "http://"+s.addr+uri, nil))
	r.Header.Set("Authorization", "Bearer "+s.key)
	got, err := callers.Do(r)
	if err != nil {
		return 0, err
	}
	defer got.Body.Close()
	_, err = io.Copy(io.Discard, got.Body)
	return got.StatusCode, err
}
