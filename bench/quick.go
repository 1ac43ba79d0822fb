package main

import (
	"slices"
	"strings"
)

// The engines to run on.
const (
	onSQLite   = "sqlite"
	onPostgres = "postgres" // with Redis
)

// receivers allows webhooks to our own receivers.
var receivers = []string{"--webhook-networks", "127.0.0.0/8"}

var quickWork = strings.Fields("first cursor status create1 create16 create128 mix fairness uploads batches deliveries distant")

// quick compares the release build with the best that net/http can do and, with -base,
// with the build of another commit, on both databases.
func quick(r *report) {
	r.prepare()
	base := ""
	if r.base != "" {
		base = r.buildRevision("base", r.base)
	}
	r.measureQuick(base)
}

// measureQuick compares the release build with the build base, if there is one.
func (r *report) measureQuick(base string) {
	b := r.bench
	for _, engine := range b.engines {
		start, suffix := b.quickOnSQLite, ""
		if engine == onPostgres {
			start, suffix = b.quickOnPostgres, ", PostgreSQL"
		}
		servers := start(base)
		for _, name := range b.workloads {
			if !slices.Contains(namesOf(workloads), name) {
				continue
			}
			w := workloadNamed(name)
			w.title += suffix
			r.results = append(r.results, b.race(w, servers...)...)
		}
		for _, s := range servers {
			if s.name != "bare" && slices.Contains(b.workloads, fairnessWork) {
				r.costs = append(r.costs, b.measureFairness(engine, s)...)
			}
			if s.name == "ours" && slices.Contains(b.workloads, uploadsWork) {
				r.costs = append(r.costs, b.measureUploads(engine, s))
			}
			if s.name == "ours" && slices.Contains(b.workloads, batchesWork) {
				r.costs = append(r.costs, b.measureBatches(engine, s))
			}
			if s.name == "ours" && slices.Contains(b.workloads, deliveriesWork) {
				r.costs = append(r.costs, b.measureDeliveries(engine, s))
			}
			s.stop()
		}
		if engine == onPostgres && slices.Contains(b.workloads, distantWork) {
			r.costs = append(r.costs, b.measureDistant())
		}
	}
}

// quickOnSQLite starts the servers to compare, ours first. base is the build of
// another commit, if any.
func (b *bench) quickOnSQLite(base string) []*server {
	s, database := b.seededCopy("ours", 1+heavyKeys)
	file := ""
	if base != "" {
		file = b.copyForBase(base, strings.TrimPrefix(database, "sqlite:"))
	}
	servers := []*server{b.startBuild(s, b.release, database, receivers...)}
	if !b.onlyBase {
		servers = append(servers, b.startBare(servers[0]))
	}
	if base != "" {
		s.name = "base"
		servers = append(servers, b.startBuild(s, base, "sqlite:"+file))
	}
	return servers
}

// quickOnPostgres is quickOnSQLite on PostgreSQL with Redis. Both builds have
// databases in one cluster and a Redis each.
func (b *bench) quickOnPostgres(base string) []*server {
	pg := findPostgres(b)
	cluster, url := pg.runSeeded(b.pets, false)
	s := b.withKeys("ours", url, b.pets, b.amount(redisKeys))
	var others []*server
	if base != "" {
		other := s
		other.name = "base"
		others = append(others, pg.startBuild(other, base, pg.copyForBase(base, url), cluster))
	}
	return append([]*server{pg.startBuild(s, b.release, url, cluster, receivers...)}, others...)
}
