package main

import (
	"fmt"
	"io"
	"io/fs"
	"strings"
	"syscall"
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

// TestServeMistakes: everything that is wrong is reported at once, in the order of the help.
func TestServeMistakes(t *testing.T) {
	for _, test := range []struct {
		name  string
		wrong func(*serveFlags)
		want  string
	}{
		{"certificate", func(f *serveFlags) { f.CertFile = "cert.pem" }, `--tls-cert and --tls-key go together: give both or neither`},
		{"backups", func(f *serveFlags) { f.backupEvery = "1ms" }, `--backup-every must be a duration of at least 1s, such as 1d, 12h or 30m, not "1ms"`},
		{"no backups", func(f *serveFlags) { f.Backups.Keep = 0 }, `--backup-keep must be at least 1`},
		{"backups of PostgreSQL", func(f *serveFlags) { f.Backups.Dir, f.Database = "backups", "postgres://db1/store" }, `--backup-dir is for SQLite: back up PostgreSQL with its own tools, see "animalstore db backup --help"`},
		{"origins", func(f *serveFlags) { f.CORSOrigins = []string{"*"} }, `--cors-origins: "*" is not an origin: write it like https://shop.example, without a path`},
		{"environment", func(f *serveFlags) { f.environment = "test" }, `--environment must be production or staging, not "test"`},
		{"photos", func(f *serveFlags) { f.photosLimit = "10" }, `--photos-limit must be a size such as 500MiB or 50GiB, not "10"`},
		{"retention", func(f *serveFlags) { f.eventsRetention = "1s" }, `--events-retention must be a duration of at least 1m, such as 30d or 12h, or 0 to keep events forever, not "1s"`},
		{"no address", func(f *serveFlags) { f.Listen = "" }, `--listen must be an address and a port, such as 127.0.0.1:8080 or :8080 for every address, not ""`},
		{"log", func(f *serveFlags) { f.logFormat = "xml" }, `--log-format must be text or json, not "xml"`},
		{"ops", func(f *serveFlags) { f.OpsListen = "8081" }, `--ops-listen must be an address and a port, such as 127.0.0.1:8080 or :8080 for every address, not "8081"`},
		{"Redis", func(f *serveFlags) { f.Redis = "limits" }, `--redis: not an address like redis://[user:password@]host:port[/database] or rediss://…`},
		{"proxies", func(f *serveFlags) { f.proxies = []string{"ten"} }, `--trusted-proxies: "ten" isn't a network such as 10.1.0.0/16 or an address`},
		{"networks", func(f *serveFlags) { f.webhookNetworks = []string{"ten"} }, `--webhook-networks: "ten" isn't a network such as 10.1.0.0/16 or an address`},
		{"several", func(f *serveFlags) { f.logFormat, f.Listen, f.Backups.Keep = "xml", "", 0 }, `3 settings are wrong:
- --backup-keep must be at least 1
- --listen must be an address and a port, such as 127.0.0.1:8080 or :8080 for every address, not ""
- --log-format must be text or json, not "xml"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := defaultServeFlags()
			test.wrong(&f)
			if _, err := f.config(io.Discard); err == nil || err.Error() != test.want {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
		})
	}
}

// TestServeWithout: what is optional may be empty.
func TestServeWithout(t *testing.T) {
	f := defaultServeFlags()
	f.OpsListen, f.Redis = "", ""
	if _, err := f.config(io.Discard); err != nil {
		t.Errorf("got %v, want no error", err)
	}
}

// readOnlyFiles is an engine on a file system that is mounted read-only.
type readOnlyFiles struct{ transfer.Files }

func (readOnlyFiles) Reserve(path string) (release func() error, err error) {
	return nil, fmt.Errorf("%s: %w", path, &fs.PathError{Op: "open", Path: path + ".lock", Err: syscall.EROFS})
}

// TestReadOnlyDirectory: systemd makes directories read-only that a unit doesn't name.
func TestReadOnlyDirectory(t *testing.T) {
	_, database := readOnlyFiles{}.Reserve("/srv/store.db")
	_, backups := transfer.NewScheduler(transfer.SchedulerConfig{Engine: readOnlyFiles{}, Store: "/srv/store.db", Schedule: transfer.Schedule{Dir: t.TempDir()}})
	for _, err := range []error{database, backups} {
		if got, want := startError(err).Error(), `ReadWritePaths= ("systemctl edit animalstore")`; !strings.Contains(got, want) {
			t.Errorf("got %q, want %s in it", got, want)
		}
	}
	if got := startError(&transfer.DirectoryError{Err: fs.ErrNotExist}).Error(); strings.Contains(got, "ReadWritePaths") {
		t.Errorf("got %q, want nothing about systemd", got)
	}
}
