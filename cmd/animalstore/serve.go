package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"animalstore"
	"animalstore/internal/commandline"
	"animalstore/internal/ratelimit"
	"animalstore/internal/server"
	"animalstore/internal/terminal"
	"animalstore/internal/webhook"

	"github.com/spf13/cobra"
)

// defaultOpsListen is where metrics and profiles are served by default.
const defaultOpsListen = "127.0.0.1:8081"

// ownerKeyVariable has no flag: other users can read the arguments of a process.
const ownerKeyVariable = server.OwnerKeyVariable

// serveFlags are the flags of serve. Those that need no parsing are in the
// configuration right away.
type serveFlags struct {
	server.Config
	environment     string
	acme            server.ACME
	proxies         []string
	webhookNetworks []string
	fastPath        bool
	console         bool
	createOwnerKey  bool
	logFormat       string
	backupEvery     string
	eventsRetention string
}

func serveCommand() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the store over HTTP",
		Long: `Serve the store over HTTP until a SIGTERM or Ctrl-C.

On an empty database it first creates an owner key and prints it to standard
output. It is shown only once. The log goes to standard error. Set
` + ownerKeyVariable + ` to supply the owner key yourself. Where standard
output ends up in a log, use --create-owner-key=false and create keys with
"animalstore keys create".`,
		Example: `  animalstore serve
  animalstore serve --listen :8080 --database sqlite:/var/lib/animalstore/store.db
  animalstore serve --listen :8080 --database 'postgres://db1,db2/store?target_session_attrs=read-write'
  animalstore serve --environment staging --listen 127.0.0.1:8090 --database sqlite:staging.db`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.OpsOptional = !cmd.Flags().Changed("ops-listen")
			return serve(cmd.Context(), f, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.Listen, "listen", "127.0.0.1:8080", "address and port to serve on; port 0 picks a free one")
	flags.StringVar(&f.OpsListen, "ops-listen", defaultOpsListen, "address and port for metrics and profiles; \"\" for none")
	flags.StringVar(&f.Database, "database", "sqlite:animalstore.db", databaseUsage)
	flags.StringVar(&f.Redis, "redis", "", "Redis that several servers share rate limits through: redis://HOST:PORT or rediss://…")
	flags.StringVar(&f.environment, "environment", "production", "production or staging: keys of the other environment are refused")
	tlsFlags(cmd, &f)
	flags.StringSliceVar(&f.proxies, "trusted-proxies", nil, "networks of proxies whose X-Forwarded-For is trusted, such as 10.0.0.0/8")
	flags.StringSliceVar(&f.webhookNetworks, "webhook-networks", nil, "networks that webhooks may lead to besides public addresses, with http too, such as 10.1.0.0/16")
	flags.StringSliceVar(&f.CORSOrigins, "cors-origins", nil, "web origins whose pages may call the API, such as https://shop.example")
	flags.BoolVar(&f.AccessLog, "access-log", false, "log a line for every request")
	flags.BoolVar(&f.fastPath, "fast-path", true, "serve plain requests without net/http, which takes less CPU; false if you suspect it of a fault")
	flags.BoolVar(&f.console, "console", true, "serve the web console at /console")
	flags.BoolVar(&f.createOwnerKey, "create-owner-key", true, "create and print an owner key if the database has no keys")
	flags.StringVar(&f.logFormat, "log-format", "text", "how to log: text or json")
	registerBackupFlags(cmd, &f)
	flags.StringVar(&f.eventsRetention, "events-retention", "30d", "how long to keep events, such as 90d or 12h; 0 keeps them forever")
	completeFlag(cmd, "environment", commandline.FixedValues(environments))
	completeFlag(cmd, "log-format", commandline.FixedValues([]string{"text", "json"}))
	return cmd
}

func serve(ctx context.Context, f serveFlags, stdout, stderr io.Writer) error {
	defer server.TuneMemory(os.Getenv("GOGC") != "")()
	cfg, err := f.config(stderr)
	if err != nil {
		return err
	}
	s, err := server.New(ctx, cfg)
	if err != nil {
		return server.ExplainStartError(err)
	}
	if err := s.OpsError(); err != nil {
		cfg.Log.Warn("no metrics and profiles: their address is taken, choose another with --ops-listen", "err", err)
	}
	greeted, err := s.FirstKey(ctx, os.Getenv(ownerKeyVariable), f.createOwnerKey, stdout)
	if err != nil {
		return errors.Join(err, s.Close())
	}
	shown := greeted && terminal.ScreenOf(stdout).Terminal
	if !shown && terminal.ScreenOf(stderr).Terminal {
		fmt.Fprintln(stderr, s.Addresses())
	}
	if err := server.NotifyReady(os.Getenv("NOTIFY_SOCKET")); err != nil {
		cfg.Log.Warn("cannot tell the service manager that the server is ready", "err", err)
	}
	return s.Run(ctx)
}

// config checks the flags and turns them into the configuration of a server.
func (f serveFlags) config(stderr io.Writer) (server.Config, error) {
	log, err := newLogger(f.logFormat, stderr)
	if err != nil {
		return server.Config{}, err
	}
	env, err := animalstore.ParseEnvironment(f.environment)
	if err != nil {
		return server.Config{}, err
	}
	if err := f.check(); err != nil {
		return server.Config{}, usageError{err}
	}
	proxies, err := server.ParseProxies("--trusted-proxies", f.proxies)
	if err != nil {
		return server.Config{}, usageError{err}
	}
	networks, err := webhook.ParseNetworks(f.webhookNetworks)
	if err != nil {
		return server.Config{}, usageError{fmt.Errorf("--webhook-networks: %w", err)}
	}
	cfg := f.Config
	cfg.WebhookNetworks = networks
	cfg.Environment, cfg.Version, cfg.Log, cfg.TrustedProxies = env, versionString(), log, proxies
	cfg.NoFastPath, cfg.NoConsole = !f.fastPath, !f.console
	cfg.Backups.Every, _ = terminal.ParseDuration(f.backupEvery) // check has parsed it
	cfg.EventsRetention, _ = parseRetention(f.eventsRetention)
	cfg.Fatal = func(err error) {
		log.Error("storage failed: stopping, so that nothing wrong is served and nothing is acknowledged that isn't on disk", "err", err)
		os.Exit(exitError)
	}
	if len(f.acme.Domains) > 0 {
		cfg.ACME = &f.acme
		if cfg.ACME.Cache == "" {
			cfg.ACME.Cache = strings.TrimPrefix(f.Database, "sqlite:") + ".acme"
		}
	}
	return cfg, nil
}

// check refuses flags that no server can start with.
func (f serveFlags) check() error {
	if err := server.Check(f.Config, f.acme); err != nil {
		return err
	}
	if f.Redis != "" {
		if err := ratelimit.CheckRedisURL(f.Redis); err != nil {
			return fmt.Errorf("--redis: %w", err)
		}
	}
	if err := f.checkBackups(); err != nil {
		return err
	}
	_, err := parseRetention(f.eventsRetention)
	return err
}

func newLogger(format string, w io.Writer) (*slog.Logger, error) {
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(w, nil)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, nil)), nil
	}
	return nil, usageError{fmt.Errorf("--log-format must be text or json, not %q", format)}
}
