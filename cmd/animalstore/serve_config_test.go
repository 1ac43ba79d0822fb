package main

import (
	"io"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db/transfer"
	"animalstore/internal/server"
)

// defaultServeFlags are the defaults of the flags.
func defaultServeFlags() serveFlags {
	return serveFlags{
		Config: server.Config{
			Listen: "127.0.0.1:8080", OpsListen: "127.0.0.1:8081", Database: "sqlite:store.db", Backups: transfer.Schedule{Keep: 7},
		},
		environment: "production", logFormat: "text", backupEvery: "24h", eventsRetention: "30d", photosLimit: "10GiB",
	}
}

func TestServeConfig(t *testing.T) {
	f := defaultServeFlags()
	f.environment, f.eventsRetention, f.backupEvery, f.photosLimit = "staging", "0", "2d", "3MiB"
	f.proxies, f.webhookNetworks = []string{"10.0.0.7"}, []string{"10.1.2.3/16"}
	f.certificates.Domains = []string{"pets.example"}
	cfg, err := f.config(io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Environment != animalstore.Staging || cfg.EventsRetention >= 0 || cfg.Backups.Every != 48*time.Hour || cfg.Log == nil {
		t.Errorf("got environment %s, retention %v, a backup every %v and log %v; want staging, forever, 48h and a log", cfg.Environment, cfg.EventsRetention, cfg.Backups.Every, cfg.Log)
	}
	if cfg.PhotosLimit != 3<<20 {
		t.Errorf("got a limit of %d bytes for photos, want 3 MiB", cfg.PhotosLimit)
	}
	if len(cfg.TrustedProxies) != 1 || cfg.TrustedProxies[0].String() != "10.0.0.7/32" || len(cfg.WebhookNetworks) != 1 || cfg.WebhookNetworks[0].String() != "10.1.0.0/16" {
		t.Errorf("got proxies %v and networks %v, want 10.0.0.7/32 and 10.1.0.0/16", cfg.TrustedProxies, cfg.WebhookNetworks)
	}
	if cfg.ACME == nil || cfg.ACME.Cache != "store.db.acme" {
		t.Errorf("got %+v, want certificates next to the database", cfg.ACME)
	}
}
