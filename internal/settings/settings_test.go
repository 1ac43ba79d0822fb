package settings

import (
	"io"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/server"
)

// defaults are settings like the defaults of the flags.
func defaults() Settings {
	return Settings{
		Config: server.Config{
			Listen: "127.0.0.1:8080", OpsListen: "127.0.0.1:8081", Database: "sqlite:store.db", Backups: server.Backups{Keep: 7},
		},
		Environment: "production", LogFormat: "text", BackupEvery: "24h", EventsRetention: "30d",
	}
}

func TestServer(t *testing.T) {
	s := defaults()
	s.Environment, s.EventsRetention, s.BackupEvery = "staging", "0", "2d"
	s.Proxies, s.WebhookNetworks = []string{"10.0.0.7"}, []string{"10.1.2.3/16"}
	s.Certificates.Domains = []string{"pets.example"}
	cfg, err := s.Server(io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Environment != animalstore.Staging || cfg.EventsRetention >= 0 || cfg.Backups.Every != 48*time.Hour || cfg.Log == nil {
		t.Errorf("got environment %s, retention %v, a backup every %v and log %v; want staging, forever, 48h and a log", cfg.Environment, cfg.EventsRetention, cfg.Backups.Every, cfg.Log)
	}
	if len(cfg.TrustedProxies) != 1 || cfg.TrustedProxies[0].String() != "10.0.0.7/32" || len(cfg.WebhookNetworks) != 1 || cfg.WebhookNetworks[0].String() != "10.1.0.0/16" {
		t.Errorf("got proxies %v and networks %v, want 10.0.0.7/32 and 10.1.0.0/16", cfg.TrustedProxies, cfg.WebhookNetworks)
	}
	if cfg.ACME == nil || cfg.ACME.Cache != "store.db.acme" {
		t.Errorf("got %+v, want certificates next to the database", cfg.ACME)
	}
}

// TestMistakes: everything that is wrong is reported at once, in the order of the help.
func TestMistakes(t *testing.T) {
	for _, test := range []struct {
		name  string
		wrong func(*Settings)
		want  string
	}{
		{"certificate", func(s *Settings) { s.CertFile = "cert.pem" }, `--tls-cert and --tls-key go together: give both or neither`},
		{"backups", func(s *Settings) { s.BackupEvery = "1ms" }, `--backup-every must be a duration of at least 1s, such as 1d, 12h or 30m, not "1ms"`},
		{"no backups", func(s *Settings) { s.Backups.Keep = 0 }, `--backup-keep must be at least 1`},
		{"backups of PostgreSQL", func(s *Settings) { s.Backups.Dir, s.Database = "backups", "postgres://db1/store" }, `--backup-dir is for SQLite: back up PostgreSQL with its own tools, see "animalstore db backup --help"`},
		{"origins", func(s *Settings) { s.CORSOrigins = []string{"*"} }, `--cors-origins: "*" is not an origin: write it like https://shop.example, without a path`},
		{"environment", func(s *Settings) { s.Environment = "test" }, `--environment must be production or staging, not "test"`},
		{"retention", func(s *Settings) { s.EventsRetention = "1s" }, `--events-retention must be a duration of at least 1m, such as 30d or 12h, or 0 to keep events forever, not "1s"`},
		{"no address", func(s *Settings) { s.Listen = "" }, `--listen must be an address and port, such as 127.0.0.1:8080`},
		{"log", func(s *Settings) { s.LogFormat = "xml" }, `--log-format must be text or json, not "xml"`},
		{"ops", func(s *Settings) { s.OpsListen = "8081" }, `--ops-listen must be an address and a port, such as 127.0.0.1:8080 or :8080 for every address, not "8081"`},
		{"Redis", func(s *Settings) { s.Redis = "limits" }, `--redis: not an address like redis://[user:password@]host:port[/database] or rediss://…`},
		{"proxies", func(s *Settings) { s.Proxies = []string{"ten"} }, `--trusted-proxies: "ten" is not a network: write it like 10.0.0.0/8 or 192.0.2.7`},
		{"networks", func(s *Settings) { s.WebhookNetworks = []string{"ten"} }, `--webhook-networks: "ten" isn't a network such as 10.1.0.0/16 or an address`},
		{"several", func(s *Settings) { s.LogFormat, s.Listen, s.Backups.Keep = "xml", "", 0 }, `3 settings are wrong:
- --backup-keep must be at least 1
- --listen must be an address and port, such as 127.0.0.1:8080
- --log-format must be text or json, not "xml"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := defaults()
			test.wrong(&s)
			if _, err := s.Server(io.Discard); err == nil || err.Error() != test.want {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
		})
	}
}

// TestWithout: what is optional may be empty.
func TestWithout(t *testing.T) {
	s := defaults()
	s.OpsListen, s.Redis = "", ""
	if _, err := s.Server(io.Discard); err != nil {
		t.Errorf("got %v, want no error", err)
	}
}
