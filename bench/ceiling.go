package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"animalstore"
)

const (
	petsPerBatch     = 100
	queuedEvents     = 40_000
	eventFollowers   = 10
	queuedDeliveries = 4_000
	severalWebhooks  = 8
)

var ceilingWork = strings.Fields("creates events deliveries")

// Their connections are divided among the instances, as a load balancer does.
var (
	singleCreates = workload{"single", "creates, 128 connections", 128, creates}
	batchCreates  = workload{"batch", "creates in batches of 100, 16 connections", 16, batchedCreates}
)

func batchedCreates(a api, _ int) (requests []string) {
	for pets := range slices.Chunk(createBodies(), petsPerBatch) {
		requests = append(requests, "POST "+a.create+`/batch {"pets":[`+strings.Join(pets, ",")+"]}")
	}
	return requests
}

// primaryWork is a row of the table, for each number of instances.
type primaryWork struct {
	title     string
	instances int
}

// primary is what was measured on one PostgreSQL.
type primary struct {
	efforts          map[primaryWork][]effort
	titles           []string // in the order of the table
	backends, memory map[int][]float64
}

// ceiling measures what several instances can do with one PostgreSQL, and what that takes.
func ceiling(r *report) {
	r.prepare()
	f := r.newFleet()
	defer f.close()
	r.primary = &primary{map[primaryWork][]effort{}, nil, map[int][]float64{}, map[int][]float64{}}
	for round := range r.rounds {
		for _, n := range r.instances {
			progress("round %d of %d, %d instances", round+1, r.rounds, n)
			f.restart(n)
			f.measureAll(r.primary)
			backends, memory := f.backends()
			r.primary.backends[n] = append(r.primary.backends[n], backends)
			r.primary.memory[n] = append(r.primary.memory[n], memory)
		}
	}
	size := cost{what: "an event in the table, with its indexes: bytes", ours: []float64{f.eventSize()}}
	r.costs = append(r.costs, size)
}

// measureAll adds one figure of each kind of work to p.
func (f *fleet) measureAll(p *primary) {
	add := func(e effort, title string) {
		work := primaryWork{title, len(f.instances)}
		if p.efforts[work] = append(p.efforts[work], e); !slices.Contains(p.titles, work.title) {
			p.titles = append(p.titles, work.title)
		}
	}
	if slices.Contains(f.workloads, "creates") {
		if f.warmup > 0 {
			f.create(singleCreates, f.warmup)
		}
		add(f.measureCreates(singleCreates, 1), singleCreates.title)
		add(f.measureCreates(batchCreates, petsPerBatch), batchCreates.title)
	}
	if slices.Contains(f.workloads, "events") {
		add(f.measureEvents(0), "events published")
		followed := fmt.Sprintf("events published, and sent to %d followers", eventFollowers)
		add(f.measureEvents(eventFollowers), followed)
	}
	if slices.Contains(f.workloads, "deliveries") {
		add(f.measureQueuedDeliveries(1), "deliveries to one webhook")
		several := fmt.Sprintf("deliveries to %d webhooks", severalWebhooks)
		add(f.measureQueuedDeliveries(severalWebhooks), several)
	}
}

// measureCreates measures creates, with so many pets in a request, until their events are
// published.
func (f *fleet) measureCreates(w workload, pets int) effort {
	f.awaitPublished()
	behind := time.Duration(0)
	e := f.measure(func() (int, time.Duration) {
		requests, took := f.create(w, f.burst)
		began := time.Now()
		f.awaitPublished()
		behind = time.Since(began)
		return requests * pets, took
	})
	e.behind = behind
	return e
}

// create sends requests to all instances at once. If one doesn't respond in time, it tries
// again for longer.
func (f *fleet) create(w workload, length time.Duration) (requests int, took time.Duration) {
	divided := w
	divided.connections = max(1, w.connections/len(f.instances))
	turns, used := make([]turn, len(f.instances)), make([]time.Duration, len(f.instances))
	failed := make([]error, len(f.instances))
	var senders sync.WaitGroup
	for i, s := range f.instances {
		file := f.writeRequests(divided, s)
		senders.Go(func() {
			thrown := attempt(func() {
				turns[i], used[i], failed[i] = f.load.runWrk(f.ctx, divided, s, file, length)
			})
			failed[i] = errors.Join(failed[i], thrown)
		})
	}
	senders.Wait()
	err := errors.Join(failed...)
	if errors.Is(err, errNothing) && length < longestTry {
		return f.create(w, 2*length)
	}
	check(err)
	for i, t := range turns {
		requests, took = requests+t.requests, max(took, time.Duration(t.seconds*float64(time.Second)))
		f.load.busiest = max(f.load.busiest, used[i].Seconds()/t.seconds)
	}
	return requests, took
}

// measureEvents measures how fast queued events are published and sent to followers.
func (f *fleet) measureEvents(followers int) effort {
	n := f.amount(queuedEvents)
	last, publish := f.queueEvents(n)
	received := f.follow(followers, last-int64(n), last)
	return f.measure(func() (int, time.Duration) {
		publish()
		began := time.Now()
		f.await("events", func() bool { return f.newestEvent() >= last })
		received()
		return n, time.Since(began)
	})
}

// follow opens streams of events after an id, spread over the instances. received returns
// when each has had the last event.
func (f *fleet) follow(count int, after, last int64) (received func()) {
	ctx, cancel := context.WithTimeout(f.ctx, publishLimit)
	ended := make(chan error, count)
	for i := range count {
		s := f.instances[i%len(f.instances)]
		feed := fmt.Sprintf("http://%s/v1/events?after=%d", s.addr, after)
		r := must(http.NewRequestWithContext(ctx, http.MethodGet, feed, nil))
		r.Header.Set("Authorization", "Bearer "+f.keys[i%len(f.keys)])
		r.Header.Set("Accept", "text/event-stream")
		got := must(http.DefaultTransport.RoundTrip(r)) // without the timeout of client
		if got.StatusCode != http.StatusOK {
			check(fmt.Errorf("follow events: %s", got.Status))
		}
		go func() { ended <- readStream(got.Body, last) }()
	}
	return func() {
		defer cancel()
		for range count {
			check(<-ended)
		}
	}
}

// readStream reads a stream of events until it has had the last event.
func readStream(stream io.ReadCloser, last int64) error {
	defer stream.Close()
	want := fmt.Sprintf("id: %d", last)
	lines := bufio.NewScanner(stream)
	for lines.Scan() {
		if lines.Text() == want {
			return nil
		}
	}
	return fmt.Errorf("a stream of events ended: %w", lines.Err())
}

// measureQueuedDeliveries measures how fast webhooks, whose receivers respond at once, get
// queued events.
func (f *fleet) measureQueuedDeliveries(webhooks int) effort {
	events := f.amount(queuedDeliveries / webhooks)
	total := events * webhooks
	var received atomic.Int64
	receiver := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { received.Add(1) })
	f.awaitPublished()
	for range webhooks {
		to := httptest.NewServer(receiver)
		defer to.Close()
		var created animalstore.Webhook
		webhook := fmt.Sprintf(`{"url":%q,"types":["pet.created"]}`, to.URL)
		f.instances[0].decode(http.MethodPost, "/v1/webhooks", webhook, &created)
		defer func() {
			check(f.store.DeleteWebhook(f.ctx, created.ID, func(*animalstore.Webhook) error { return nil }))
		}()
	}
	_, publish := f.queueEvents(events)
	return f.measure(func() (int, time.Duration) {
		publish()
		began := time.Now()
		f.await("deliveries", func() bool { return received.Load() >= int64(total) })
		return total, time.Since(began)
	})
}

// tables have a row for each kind of work and number of instances.
func (p *primary) tables(instances []int) []*table {
	t := &table{title: "One primary; CPU time in µs", head: []string{"work", "instances", "per second", "PostgreSQL",
		"servers", "Redis", "clients", "WAL bytes", "per commit", "events behind", "a core of PostgreSQL does"}}
	for _, title := range p.titles {
		for _, n := range instances {
			if all := p.efforts[primaryWork{title, n}]; len(all) > 0 { // else the run failed earlier
				t.rows = append(t.rows, append([]string{title, strconv.Itoa(n)}, effortCells(all)...))
			}
		}
	}
	c := &table{title: "Connections", head: []string{"instances", "connections", "MiB of each"}}
	for _, n := range instances {
		if len(p.backends[n]) > 0 {
			c.rows = append(c.rows, []string{strconv.Itoa(n), spread(p.backends[n]), spread(p.memory[n])})
		}
	}
	return []*table{t, c}
}

func effortCells(all []effort) []string {
	figures := func(of func(effort) float64) []float64 {
		values := make([]float64, len(all))
		for i, e := range all {
			values[i] = of(e)
		}
		return values
	}
	each := func(format string, of func(effort) float64) string { return fmt.Sprintf(format, median(figures(of))) }
	postgres := figures(func(e effort) float64 { return e.micros(e.postgres) })
	behind := ""
	if all[0].behind > 0 {
		behind = each("%.0f ms", func(e effort) float64 { return 1000 * e.behind.Seconds() })
	}
	return []string{
		spread(figures(effort.perSecond)),
		spread(postgres),
		each("%.1f", func(e effort) float64 { return e.micros(e.servers) }),
		each("%.1f", func(e effort) float64 { return e.micros(e.redis) }),
		each("%.1f", func(e effort) float64 { return e.micros(e.clients) }),
		each("%.0f", func(e effort) float64 { return float64(e.wal) / float64(e.count) }),
		each("%.1f", func(e effort) float64 { return float64(e.count) / float64(max(1, e.commits)) }),
		behind,
		fmt.Sprintf("%.0f/s", 1e6/median(postgres)),
	}
}
