package main

import (
	"slices"
	"strings"
)

// bar is the limit for a figure. The zero bar means none.
type bar struct{ atLeast, atMost float64 }

// live is the work that users do.
const live = "first cursor status create16 create128 mix"

// bars are all bars: what the service reaches on a machine that does nothing else. A change
// that misses one has to explain itself. Ratios of throughput are ours to the other
// server's; ratios of cost are a large store's to a small one's.
var bars = []struct {
	command, works, versus string
	bar                    bar
}{
	{"peers", "first", "bare", bar{atLeast: 1.1}},
	{"peers", "cursor", "bare", bar{atLeast: 0.5}},
	{"peers", "first", "axum", bar{atLeast: 2}},
	{"peers", "cursor", "axum", bar{atLeast: 1}},
	{"peers", "mix", "axum", bar{atLeast: 0.95}},
	{"peers", "status", "axum", bar{atLeast: 3}},
	{"peers", "create16", "axum", bar{atLeast: 1.4}},
	{"peers", "create128", "axum", bar{atLeast: 2}},
	{"peers", "create1", "axum", bar{atLeast: 0.6}},
	{"peers", live, "fastify", bar{atLeast: 1.1}},
	{"peers", live, "pocketbase", bar{atLeast: 3}},
	{"peers", "create1", "fastify", bar{atLeast: 0.75}},
	// Ours on PostgreSQL and Redis must reach this share of ours on SQLite.
	{"peers", "first cursor", "postgres", bar{atMost: 1 / 0.25}},
	{"peers", "create128", "postgres", bar{atMost: 1 / 0.4}},
	{"peers", "first create128", allCores, bar{atLeast: 0.5}},
	{"peers", "first", oneKey, bar{atLeast: 0.8}},
	{"peers", "memory", "", bar{atMost: 128}},   // MiB
	{"peers", "fairness", "", bar{atMost: 150}}, // ms

	{"quick", "first", "bare", bar{atLeast: 1.1}},
	{"quick", "cursor", "bare", bar{atLeast: 0.5}},
	{"quick", live + " create1", "base", bar{atLeast: 0.85}},
	{"quick", "fairness uploads", "", bar{atMost: 150}}, // ms
	{"quick", "batches", "", bar{atLeast: 12}},
	{"quick", "distant", "alone", bar{atMost: 3}},

	{"growth", "cursor rare name half none one feed end subject", "small", bar{atMost: 1.3}},
}

// barFor finds a bar. Most pairs of a workload and a server have none.
func barFor(command, work, versus string) bar {
	for _, b := range bars {
		if b.command == command && b.versus == versus && slices.Contains(strings.Fields(b.works), work) {
			return b.bar
		}
	}
	return bar{}
}
