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
	f := serveFlags{photosLimit: "10GiB"}
	f.Listen, f.OpsListen, f.Database, f.Backups = "127.0.0.1:8080", "127.0.0.1:8081", "sqlite:store.db", transfer.Schedule{Every: time.Hour, Keep: 7}
	return f
}

func TestServeConfig(t *testing.T) {
	f := defaultServeFlags()
	f.photosLimit = "3MiB"
	f.proxies, f.webhookNetworks = []string{"10.0.0.7"}, []string{"10.1.2.3/16"}
	f.ACME.Domains = []string{"pets.example"}
	cfg, err := f.config(io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if cfg.PhotosLimit != 3<<20 {
		t.Errorf("got a limit of %d bytes for photos, want 3 MiB", cfg.PhotosLimit)
	}
	if len(cfg.TrustedProxies) != 1 || cfg.TrustedProxies[0].String() != "10.0.0.7/32" || len(cfg.WebhookNetworks) != 1 || cfg.WebhookNetworks[0].String() != "10.1.0.0/16" {
		t.Errorf("got proxies %v and networks %v, want 10.0.0.7/32 and 10.1.0.0/16", cfg.TrustedProxies, cfg.WebhookNetworks)
	}
	if cfg.ACME.Cache != "store.db.acme" {
		t.Errorf("got %+v, want certificates next to the database", cfg.ACME)
	}
}

// TestNewKeyCommand: the command has what the server was started with, except its password.
func TestNewKeyCommand(t *testing.T) {
	const create = "animalstore keys create --name owner --plan business --permissions read,write,admin --environment staging --database "
	for database, want := range map[string]string{
		"sqlite:data/store.db":                                            "sqlite:data/store.db",
		"sqlite:my store.db":                                              "'sqlite:my store.db'",
		"postgres://shop@db1,db2/store":                                   "postgres://shop@db1,db2/store",
		"postgres://shop:hunter2@db1/store":                               "postgres://shop@db1/store",
		"postgres://db1/store?user=shop&password=hunter2&sslmode=require": "'postgres://db1/store?sslmode=require&user=shop'",
	} {
		cfg := server.Config{Database: database}
		cfg.Environment = animalstore.Staging
		if got := newKeyCommand(cfg); got != create+want {
			t.Errorf("got  %s\nwant %s", got, create+want)
		}
	}
}
