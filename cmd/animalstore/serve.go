package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"animalstore/internal/commandline"
	"animalstore/internal/server"
	"animalstore/internal/settings"
	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
)

// defaultOpsListen is where metrics and profiles are served by default.
const defaultOpsListen = "127.0.0.1:8081"

// ownerKeyVariable has no flag: other users can read the arguments of a process.
const ownerKeyVariable = server.OwnerKeyVariable

type serveFlags struct {
	settings.Settings
	fastPath       bool
	console        bool
	createOwnerKey bool
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
			f.NoFastPath, f.NoConsole, f.Version = !f.fastPath, !f.console, versionString()
			return serve(cmd.Context(), f, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.Listen, "listen", "127.0.0.1:8080", "address and port to serve on; port 0 picks a free one")
	flags.StringVar(&f.OpsListen, "ops-listen", defaultOpsListen, "address and port for metrics and profiles; \"\" for none")
	flags.StringVar(&f.Database, "database", "sqlite:animalstore.db", databaseUsage)
	flags.StringVar(&f.Redis, "redis", "", "Redis that several servers share rate limits through: redis://HOST:PORT or rediss://…")
	flags.StringVar(&f.Environment, "environment", "production", "production or staging: keys of the other environment are refused")
	tlsFlags(cmd, &f)
	flags.StringSliceVar(&f.Proxies, "trusted-proxies", nil, "networks of proxies whose X-Forwarded-For is trusted, such as 10.0.0.0/8")
	flags.StringSliceVar(&f.WebhookNetworks, "webhook-networks", nil, "networks that webhooks may lead to besides public addresses, with http too, such as 10.1.0.0/16")
	flags.StringSliceVar(&f.CORSOrigins, "cors-origins", nil, "web origins whose pages may call the API, such as https://shop.example")
	flags.BoolVar(&f.AccessLog, "access-log", false, "log a line for every request")
	flags.BoolVar(&f.fastPath, "fast-path", true, "serve plain requests without net/http, which takes less CPU; false if you suspect it of a fault")
	flags.BoolVar(&f.console, "console", true, "serve the web console at /console")
	flags.BoolVar(&f.createOwnerKey, "create-owner-key", true, "create and print an owner key if the database has no keys")
	flags.StringVar(&f.LogFormat, "log-format", "text", "how to log: text or json")
	flags.StringVar(&f.Backups.Dir, "backup-dir", "", "directory to back up a SQLite database to, regularly")
	flags.StringVar(&f.BackupEvery, "backup-every", "24h", "how often to back up, such as 1d, 12h or 30m")
	flags.IntVar(&f.Backups.Keep, "backup-keep", 7, "how many backups to keep; older ones are deleted")
	completeFlag(cmd, "backup-dir", commandline.CompleteDirectories)
	flags.StringVar(&f.EventsRetention, "events-retention", "30d", "how long to keep events, such as 90d or 12h; 0 keeps them forever")
	completeFlag(cmd, "environment", commandline.FixedValues(environments))
	completeFlag(cmd, "log-format", commandline.FixedValues([]string{"text", "json"}))
	return cmd
}

func serve(ctx context.Context, f serveFlags, stdout, stderr io.Writer) error {
	defer server.TuneMemory(os.Getenv("GOGC") != "")()
	cfg, err := f.Server(stderr)
	if err != nil {
		return usagef("%w", err)
	}
	cfg.Fatal = func(err error) {
		cfg.Log.Error("storage failed: stopping, so that nothing wrong is served and nothing is acknowledged that isn't on disk", "err", err)
		os.Exit(exitError)
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
