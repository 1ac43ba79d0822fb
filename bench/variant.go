package main

import (
	"context"
	"fmt"
	"os/signal"
	"syscall"

	"animalstore/internal/db/sqlite"
	service "animalstore/internal/server"
)

const (
	oneByOne = "one-by-one"
	uncached = "uncached"
)

// variants are what the release build can't be told to do without.
var variants = map[string]service.Config{
	oneByOne: {Tuning: sqlite.Tuning{MaxBatch: 1}}, // each create is committed on its own
	uncached: {NoPageCache: true},
}

// serveVariant runs the service without one of its optimizations. Its arguments
// are an address, the URL of a database and the name of a variant.
func serveVariant(args []string) {
	config, known := variants[args[2]]
	if !known {
		check(fmt.Errorf("there is no variant %q", args[2]))
	}
	config.Listen, config.Database = args[0], args[1]
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	check(must(service.New(ctx, config)).Run(ctx))
}
