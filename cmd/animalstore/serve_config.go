package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/mail"
	"net/url"
	"strconv"
	"strings"
	"time"

	"animalstore/internal/certs"
	"animalstore/internal/cli"
	"animalstore/internal/db/postgres"
	"animalstore/internal/ratelimit"
	"animalstore/internal/server"
	"animalstore/internal/webhook"

	"github.com/spf13/cobra"
)

// config returns the configuration of the server, which logs to log. The error names all
// flags that are wrong, in the order of the help.
func (f serveFlags) config(log io.Writer) (server.Config, error) {
	cfg := f.Config
	wrong := []error{
		checkTLS(cfg),
		f.parseBackups(&cfg),
		checkOrigins(cfg.CORSOrigins),
		parseSecurityContact(&cfg),
		server.CheckDatabaseURL("--database", cfg.Database),
		checkRetention(cfg.EventsRetention),
		checkShutdownDelay(cfg.ShutdownDelay),
		f.parsePhotosLimit(&cfg),
		checkListen("--listen", cfg.Listen),
	}
	if cfg.OpsListen != "" {
		wrong = append(wrong, checkListen("--ops-listen", cfg.OpsListen))
	}
	if cfg.Redis != "" {
		wrong = append(wrong, named("--redis", ratelimit.CheckRedisURL(cfg.Redis)))
	}
	var proxies, networks error
	cfg.TrustedProxies, proxies = webhook.ParseNetworks(f.proxies)
	cfg.WebhookNetworks, networks = webhook.ParseNetworks(f.webhookNetworks)
	if len(cfg.ACME.Domains) > 0 && cfg.ACME.Cache == "" {
		cfg.ACME.Cache = strings.TrimPrefix(cfg.Database, "sqlite:") + ".acme"
	}
	cfg.Log = slog.New(slog.NewTextHandler(log, nil))
	if f.logFormat == "json" {
		cfg.Log = slog.New(slog.NewJSONHandler(log, nil))
	}
	return cfg, errors.Join(append(wrong, named("--trusted-proxies", proxies), named("--webhook-networks", networks))...)
}

func (f serveFlags) parseBackups(cfg *server.Config) (err error) {
	switch {
	case cfg.Backups.Every < time.Second:
		return errors.New("--backup-every must be at least 1s")
	case cfg.Backups.Keep < 1:
		return errors.New("--backup-keep must be at least 1")
	case cfg.Backups.Dir != "" && postgres.Is(cfg.Database):
		return errors.New("--backup-dir is for SQLite: back up PostgreSQL with its own tools, see \"animalstore db backup --help\"")
	}
	cfg.Backups.To, err = parseBackupTo(f.backupTo, cfg.Database)
	return err
}

// parseSecurityContact makes an email address a URL.
func parseSecurityContact(cfg *server.Config) error {
	contact := strings.TrimPrefix(cfg.SecurityContact, "mailto:")
	page, err := url.Parse(contact)
	address, mailErr := mail.ParseAddress(contact)
	switch {
	case contact == "", err == nil && page.Scheme == "https" && page.Host != "":
	case mailErr == nil && address.Address == contact:
		cfg.SecurityContact = "mailto:" + contact
	default:
		return fmt.Errorf("--security-contact must be an email address or a URL that begins with https://, not %q", cfg.SecurityContact)
	}
	return nil
}

func checkRetention(events time.Duration) error {
	if events > 0 && events < time.Minute {
		return errors.New("--events-retention must be at least 1m, or 0 to keep events forever")
	}
	return nil
}

// maxShutdownDelay is longer than any load balancer needs: more is a mistake in the unit.
const maxShutdownDelay = 10 * time.Minute

func checkShutdownDelay(delay time.Duration) error {
	if delay > maxShutdownDelay {
		return errors.New("--shutdown-delay must be at most 10m")
	}
	return nil
}

// parsePhotosLimit reads a number of bytes.
func (f serveFlags) parsePhotosLimit(cfg *server.Config) (err error) {
	if cfg.PhotosLimit, err = parseSize(f.photosLimit); err != nil || cfg.PhotosLimit < 1 {
		return fmt.Errorf("--photos-limit must be a size such as 500MiB or 50GiB, not %q", f.photosLimit)
	}
	return nil
}

// parseSize parses a number of bytes, such as 500MiB.
func parseSize(s string) (int64, error) {
	for shift, unit := range []string{"B", "KiB", "MiB", "GiB", "TiB"} {
		number, ok := strings.CutSuffix(s, unit)
		n, err := strconv.ParseInt(number, 10, 64)
		if ok && err == nil && n >= 0 && n <= math.MaxInt64>>(10*shift) {
			return n << (10 * shift), nil
		}
	}
	return 0, errors.New("not a size")
}

// checkListen refuses anything but an address and a port. For "", net.Listen would pick
// any port on every address.
func checkListen(flag, listen string) error {
	_, port, err := net.SplitHostPort(listen)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil || port == "" {
		return fmt.Errorf("%s must be an address and a port, such as 127.0.0.1:8080 or :8080 for every address, not %q", flag, listen)
	}
	return nil
}

// checkOrigins refuses values that no browser sends as an origin.
func checkOrigins(origins []string) error {
	for _, o := range origins {
		scheme, host, ok := strings.Cut(o, "://")
		if !ok || scheme != "http" && scheme != "https" || host == "" || strings.ContainsAny(host, "/*? ") {
			return fmt.Errorf("--cors-origins: %q is not an origin: write it like https://shop.example, without a path", o)
		}
	}
	return nil
}

// named adds the name of a flag to an error.
func named(flag string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", flag, err)
}

// tlsFlags adds the flags for HTTPS.
func tlsFlags(cmd *cobra.Command, f *serveFlags) {
	flags := cmd.Flags()
	flags.StringVar(&f.CertFile, "tls-cert", "", "file with the certificate chain, to serve HTTPS; read again when it changes")
	flags.StringVar(&f.KeyFile, "tls-key", "", "file with the private key of the certificate")
	flags.StringSliceVar(&f.ACME.Domains, "acme-domain", nil,
		"domains to obtain certificates for, from Let's Encrypt or --acme-directory; accepts the authority's terms")
	flags.StringVar(&f.ACME.Cache, "acme-cache", "",
		"directory for these certificates and their keys (default the database's file with .acme at the end)")
	flags.StringVar(&f.ACME.Directory, "acme-directory", "", "URL of the authority that issues them (default that of Let's Encrypt)")
	flags.StringVar(&f.ACME.Email, "acme-email", "", "where the authority may report problems")
	flags.StringVar(&f.RedirectListen, "redirect-http", "",
		"address and port, such as :80, that redirects plain HTTP to HTTPS and serves ACME's HTTP challenges")
	cli.CompleteFlag(cmd, "tls-cert", cli.CompleteFiles)
	cli.CompleteFlag(cmd, "tls-key", cli.CompleteFiles)
}

// checkTLS refuses settings for HTTPS that contradict each other or can't work.
func checkTLS(cfg server.Config) error {
	acme := cfg.ACME
	issued := len(acme.Domains) > 0
	switch {
	case (cfg.CertFile == "") != (cfg.KeyFile == ""):
		return errors.New("give both --tls-cert and --tls-key, or neither")
	case issued && cfg.CertFile != "":
		return errors.New("use --acme-domain or --tls-cert, not both")
	case !issued && (acme.Cache != "" || acme.Email != "" || acme.Directory != ""):
		return errors.New("--acme-cache, --acme-directory and --acme-email need --acme-domain")
	case issued && acme.Cache == "" && !strings.HasPrefix(cfg.Database, "sqlite:"):
		return errors.New("--acme-domain needs --acme-cache, a directory for the certificates, because the database isn't a file")
	case cfg.RedirectListen != "" && !issued && cfg.CertFile == "":
		return errors.New("--redirect-http needs a certificate: give --tls-cert and --tls-key, or --acme-domain")
	}
	if cfg.RedirectListen != "" {
		if err := checkListen("--redirect-http", cfg.RedirectListen); err != nil {
			return err
		}
	}
	if acme.Directory != "" {
		if err := certs.CheckDirectory(acme.Directory); err != nil {
			return fmt.Errorf("--acme-directory %w", err)
		}
	}
	for _, domain := range acme.Domains {
		if err := certs.CheckDomain(domain); err != nil {
			return named("--acme-domain", err)
		}
	}
	return nil
}
