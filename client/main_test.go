package client_test

import (
	"context"
	"errors"
	"log"
	"os"
	"path/filepath"
	"testing"

	"animalstore/internal/server"
)

// The examples run against the real service, at this address with this key.
var address, apiKey string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "client")
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	store, err := server.New(ctx, server.Config{Database: "sqlite:" + filepath.Join(dir, "store.db"), Listen: "127.0.0.1:0"})
	if err != nil {
		log.Fatal(err)
	}
	owner, err := store.CreateOwnerKey(ctx, "")
	if err != nil {
		log.Fatal(err)
	}
	address, apiKey = store.URL(), owner.Secret
	ended := make(chan error)
	go func() { ended <- store.Run(ctx) }()
	code := m.Run()
	stop()
	if err := errors.Join(<-ended, os.RemoveAll(dir)); err != nil {
		log.Fatal(err)
	}
	os.Exit(code)
}
