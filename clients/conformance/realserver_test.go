package conformance

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"animalstore/internal/server"
)

// ownerKey is the first key of every server here, with all permissions.
const ownerKey = "conformance-owner-key-of-a-throwaway-store"

// startReal starts the service on a new database and returns its address. Pages of these
// origins may call it.
func startReal(t testing.TB, origins ...string) (url string) {
	t.Helper()
	cfg := server.Config{
		Database:        "sqlite:" + filepath.Join(t.TempDir(), "store.db"),
		Listen:          "127.0.0.1:0",
		WebhookNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Timeouts:        server.Timeouts{Drain: time.Second},
	}
	cfg.Log, cfg.CORSOrigins = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})), origins
	s, err := server.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.CreateOwnerKey(t.Context(), ownerKey); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		// A client may keep its connection.
		if err := <-done; err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s.URL()
}

// withoutSettings is the environment without settings of the program.
func withoutSettings() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "ANIMALSTORE_") })
}
