// Command weakserver is the server without waiting for the disk. The durability checks
// must fail for it.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"animalstore/internal/server"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "weakserver:", err)
		os.Exit(1)
	}
}

// serve accepts the arguments of "animalstore serve" that the tests use.
func serve(ctx context.Context) error {
	flags := flag.NewFlagSet("serve", flag.ExitOnError)
	listen := flags.String("listen", "", "address and port")
	database := flags.String("database", "", "sqlite:FILE")
	flags.Parse(os.Args[2:])
	s, err := server.New(ctx, server.Config{
		Database: *database,
		Listen:   *listen,
		Log:      slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Hooks:    server.Hooks{NoSync: true},
	})
	if err != nil {
		return err
	}
	return s.Run(ctx)
}
