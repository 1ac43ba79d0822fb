// Package settings turns the settings of "animalstore serve", as an operator writes them,
// into the configuration of a server. It checks all of them before anything starts, and
// reports everything that is wrong at once.
package settings

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"animalstore"
	"animalstore/internal/db/postgres"
	"animalstore/internal/ratelimit"
	"animalstore/internal/server"
	"animalstore/internal/terminal"
	"animalstore/internal/webhook"
)

// Settings are what the flags of serve say. Those that need no parsing are in the
// embedded Config; a field with the same name as one of Config is its text.
type Settings struct {
	server.Config
	Certificates    server.ACME // to obtain; none without domains
	Environment     string
	LogFormat       string // text or json
	Proxies         []string
	WebhookNetworks []string
	BackupEvery     string // a duration
	EventsRetention string // a duration, or 0 for no end
}

// Server returns the configuration of the server, which logs to log. The error names the
// flags that are wrong, in the order of the help.
func (s Settings) Server(log io.Writer) (server.Config, error) {
	cfg := s.Config
	var wrong mistakes
	wrong.add(server.CheckTLS(cfg, s.Certificates))
	wrong.add(s.parseBackups(&cfg))
	wrong.add(server.CheckOrigins("--cors-origins", cfg.CORSOrigins))
	wrong.add(server.CheckDatabaseURL("--database", cfg.Database))
	wrong.add(s.parseEnvironment(&cfg))
	wrong.add(s.parseRetention(&cfg))
	wrong.add(checkListen("--listen", cfg.Listen))
	wrong.add(s.parseLogFormat(&cfg, log))
	if cfg.OpsListen != "" {
		wrong.add(checkListen("--ops-listen", cfg.OpsListen))
	}
	if cfg.Redis != "" {
		wrong.add(named("--redis", ratelimit.CheckRedisURL(cfg.Redis)))
	}
	var err error
	cfg.TrustedProxies, err = server.ParseProxies("--trusted-proxies", s.Proxies)
	wrong.add(err)
	cfg.WebhookNetworks, err = webhook.ParseNetworks(s.WebhookNetworks)
	wrong.add(named("--webhook-networks", err))
	s.obtainCertificates(&cfg)
	return cfg, wrong.err()
}

func (s Settings) parseBackups(cfg *server.Config) (err error) {
	cfg.Backups.Every, err = terminal.ParseDuration(s.BackupEvery)
	switch {
	case err != nil || cfg.Backups.Every < time.Second:
		return fmt.Errorf("--backup-every must be a duration of at least 1s, such as 1d, 12h or 30m, not %q", s.BackupEvery)
	case cfg.Backups.Keep < 1:
		return errors.New("--backup-keep must be at least 1")
	case cfg.Backups.Dir != "" && postgres.Is(cfg.Database):
		return errors.New("--backup-dir is for SQLite: back up PostgreSQL with its own tools, see \"animalstore db backup --help\"")
	}
	return nil
}

func (s Settings) parseEnvironment(cfg *server.Config) (err error) {
	if cfg.Environment, err = animalstore.ParseEnvironment(s.Environment); err != nil {
		return fmt.Errorf("--%s", err.(*animalstore.Error).Message)
	}
	return nil
}

// parseRetention reads how long to keep events. It is negative for no end.
func (s Settings) parseRetention(cfg *server.Config) (err error) {
	if s.EventsRetention == "0" {
		cfg.EventsRetention = -1
		return nil
	}
	cfg.EventsRetention, err = terminal.ParseDuration(s.EventsRetention)
	if err != nil || cfg.EventsRetention < time.Minute {
		return fmt.Errorf("--events-retention must be a duration of at least 1m, such as 30d or 12h, or 0 to keep events forever, not %q", s.EventsRetention)
	}
	return nil
}

func checkListen(flag, listen string) error {
	if listen == "" { // net.Listen would pick any port on every address
		return fmt.Errorf("%s must be an address and port, such as 127.0.0.1:8080", flag)
	}
	return server.CheckListenAddress(flag, listen)
}

func (s Settings) parseLogFormat(cfg *server.Config, w io.Writer) error {
	switch s.LogFormat {
	case "text":
		cfg.Log = slog.New(slog.NewTextHandler(w, nil))
	case "json":
		cfg.Log = slog.New(slog.NewJSONHandler(w, nil))
	default:
		return fmt.Errorf("--log-format must be text or json, not %q", s.LogFormat)
	}
	return nil
}

// obtainCertificates keeps them next to the database unless a directory is named.
func (s Settings) obtainCertificates(cfg *server.Config) {
	if len(s.Certificates.Domains) == 0 {
		return
	}
	cfg.ACME = &s.Certificates
	if cfg.ACME.Cache == "" {
		cfg.ACME.Cache = strings.TrimPrefix(cfg.Database, "sqlite:") + ".acme"
	}
}

// named adds the name of a flag to an error.
func named(flag string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", flag, err)
}

// mistakes are the settings that are wrong.
type mistakes []error

func (m *mistakes) add(err error) {
	if err != nil {
		*m = append(*m, err)
	}
}

func (m mistakes) err() error {
	if len(m) < 2 {
		return errors.Join(m...)
	}
	var lines strings.Builder
	for _, err := range m {
		lines.WriteString("\n- " + err.Error())
	}
	return fmt.Errorf("%d settings are wrong:%s", len(m), lines.String())
}
