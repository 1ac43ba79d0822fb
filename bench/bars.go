package main

// bar is the limit for a figure. The zero bar is none.
type bar struct{ atLeast, atMost float64 }

// bars are all there are. Each is what was asked of the service, and isn't
// adjusted to what it reaches. Ratios of throughput are ours to the other
// server's; ratios of cost are those of a large store to a small one.
var bars = []struct {
	command, work, versus string
	bar                   bar
}{
	{"peers", "first", "bare", bar{atLeast: 0.92}},
	{"peers", "first", "pocketbase", bar{atLeast: 20}},
	{"peers", "first", "fastify", bar{atLeast: 4.5}},
	{"peers", "cursor", "bare", bar{atLeast: 0.55}},
	{"peers", "cursor", "pocketbase", bar{atLeast: 12}},
	{"peers", "cursor", "fastify", bar{atLeast: 2.5}},
	{"peers", "get", "bare", bar{atLeast: 0.85}},
	{"peers", "get", "pocketbase", bar{atLeast: 5}},
	{"peers", "get", "fastify", bar{atLeast: 1.8}},
	{"peers", "create1", "pocketbase", bar{atLeast: 2}},
	{"peers", "create1", "fastify", bar{atLeast: 1.1}},
	{"peers", "create16", "pocketbase", bar{atLeast: 5}},
	{"peers", "create16", "fastify", bar{atLeast: 3}},
	{"peers", "create128", "pocketbase", bar{atLeast: 9}},
	{"peers", "create128", "fastify", bar{atLeast: 4.5}},
	{"peers", anyWork, "fastify", bar{atLeast: 1.1}},
	{"peers", "mix", "bare", bar{atLeast: 0.6}},
	{"peers", "getmany", "axum", bar{atLeast: 1}},
	{"peers", "create1", "axum", bar{atLeast: 1}},
	{"peers", "halfload", "axum", bar{atMost: 1}},
	{"peers", anyWork, "axum", bar{atLeast: 1.1}},
	// Ours on PostgreSQL and Redis is to reach this share of ours on SQLite.
	{"peers", "first", "postgres", bar{atMost: 1 / 0.35}},
	{"peers", "cursor", "postgres", bar{atMost: 1 / 0.35}},
	{"peers", "get", "postgres", bar{atMost: 1 / 0.30}},
	{"peers", "create128", "postgres", bar{atMost: 1 / 0.45}},
	{"peers", "create128", allCores, bar{atLeast: 0.6}},
	{"peers", "first", bareTLS, bar{atLeast: 0.9}},
	{"peers", "get", bareTLS, bar{atLeast: 0.9}},
	{"peers", "get", oneKey, bar{atLeast: 0.85}},
	{"peers", anyWork, unfollowed, bar{atLeast: 0.9}},
	{"peers", anyWork, unhooked, bar{atLeast: 0.7}},
	{"peers", "memory", "ours", bar{atMost: 64}},      // MiB
	{"peers", "connections", "ours", bar{atMost: 96}}, // MiB

	{"quick", "first", "bare", bar{atLeast: 0.85}},
	{"quick", "cursor", "bare", bar{atLeast: 0.45}},
	{"quick", "get", "bare", bar{atLeast: 0.60}},
	{"quick", "create16", "one-by-one", bar{atLeast: 2.5}},
	{"quick", "create128", "one-by-one", bar{atLeast: 3.5}},
	{"quick", anyWork, "base", bar{atLeast: 0.97}},

	{"growth", anyWork, "small", bar{atMost: 1.15}},
	{"growth", "start", "", bar{atMost: 100}}, // ms

	// A tree with fifty times the rows is a level higher, and less of it stays
	// near the processor. Ids lie on a page each: of those SQLite's cache holds
	// about half in the small store, and next to none in the large one.
	{"filters", "page", "small", bar{atMost: 1.5}},
	{"filters", "ids", "small", bar{atMost: 2.5}},
}

const anyWork = "*"

// barFor finds a bar: one for the workload comes before one for any. Most pairs of a
// workload and a server have none.
func barFor(command, work, versus string) bar {
	for _, b := range bars {
		if b.command == command && (b.work == work || b.work == anyWork) && b.versus == versus {
			return b.bar
		}
	}
	return bar{}
}
