package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"animalstore"
	"animalstore/internal/cli"
	"animalstore/internal/db"
	"animalstore/internal/db/postgres"
	"animalstore/internal/db/transfer"
	"animalstore/internal/server"
	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
)

// defaultOpsListen is where metrics and profiles are served by default.
const defaultOpsListen = "127.0.0.1:8081"

// ownerKeyVariable has no flag: other users can read the arguments of a process.
const ownerKeyVariable = "ANIMALSTORE_OWNER_KEY"

// serveFlags are the flags of serve. Those that need no parsing are in the embedded Config.
type serveFlags struct {
	server.Config
	logFormat       string
	proxies         []string
	webhookNetworks []string
	backupTo        string
	photosLimit     string
	fastPath        bool
	console         bool
	mcp             bool
	createOwnerKey  bool
}

const serveHelp = `Serve the store over HTTP until a SIGTERM or Ctrl-C.

On an empty database it first creates an owner key and prints it to standard
output. It is shown only once. The log goes to standard error. Set
` + ownerKeyVariable + `, or ` + ownerKeyVariable + `_FILE to a file
with the key, to supply the owner key yourself. Where standard output ends up in
a log, use --create-owner-key=false and create keys with "animalstore keys
create".

A socket from LISTEN_FDS, as systemd passes it, is used instead of --listen, and
one named "ops" instead of --ops-listen.

The address in --redis is that of one server, of at least two nodes of a
Cluster, or of the sentinels that watch a primary; rediss:// uses TLS:
  redis://cache:6379
  redis://a:6379?addr=b:6379&addr=c:6379
  redis://a:26379?addr=b:26379&master_set=NAME`

func serveCommand() *cobra.Command {
	f := serveFlags{logFormat: "text"}
	f.Environment, f.Backups.Every, f.EventsRetention = animalstore.Production, 24*time.Hour, 30*24*time.Hour
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the store over HTTP",
		Long:  serveHelp,
		Example: `  animalstore serve
  animalstore serve --listen :8080 \
      --database sqlite:/var/lib/animalstore/store.db
  animalstore serve --listen :8080 \
      --database 'postgres://db1,db2/store?target_session_attrs=read-write'
  animalstore serve --environment staging --listen 127.0.0.1:8090 \
      --database sqlite:staging.db`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.OpsOptional = !cmd.Flags().Changed("ops-listen")
			f.NoFastPath, f.NoConsole, f.NoMCP, f.Version = !f.fastPath, !f.console, !f.mcp, versionString()
			return runServer(cmd.Context(), f, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.Listen, "listen", "127.0.0.1:8080", "address and port to serve on; port 0 picks a free one")
	flags.StringVar(&f.OpsListen, "ops-listen", defaultOpsListen, "address and port for metrics and profiles; \"\" for none")
	flags.StringVar(&f.Database, "database", "sqlite:animalstore.db", databaseUsage)
	flags.StringVar(&f.Redis, "redis", "", "Redis that several servers share rate limits through: redis://HOST:PORT, rediss://… or another address above")
	cli.RegisterOneOf(cmd, &f.Environment, environments, "environment",
		"production or staging: keys of the other environment are refused")
	tlsFlags(cmd, &f)
	flags.StringSliceVar(&f.proxies, "trusted-proxies", nil, "networks of proxies whose X-Forwarded-For is trusted, such as 10.0.0.0/8")
	flags.StringSliceVar(&f.webhookNetworks, "webhook-networks", nil, "extra networks that webhooks may reach, also over http, such as 10.1.0.0/16")
	flags.StringSliceVar(&f.CORSOrigins, "cors-origins", nil, "web origins whose pages may call the API, such as https://shop.example")
	flags.BoolVar(&f.AccessLog, "access-log", false, "log a line for every request")
	flags.StringVar(&f.SecurityContact, "security-contact", "", "where to report vulnerabilities, for /.well-known/security.txt: an email address or https://…")
	flags.BoolVar(&f.fastPath, "fast-path", true, "serve simple requests without net/http, which takes less CPU; turn it off if you suspect a bug in it")
	flags.BoolVar(&f.console, "console", true, "serve the web console at /console")
	flags.BoolVar(&f.mcp, "mcp", true, "let assistants with a key use the store at /mcp")
	flags.BoolVar(&f.createOwnerKey, "create-owner-key", true, "create and print an owner key if the database has no keys")
	cli.RegisterOneOf(cmd, &f.logFormat, []string{"text", "json"}, "log-format", "how to log: text or json")
	flags.StringVar(&f.Backups.Dir, "backup-dir", "", "directory to back up a SQLite database to, regularly")
	flags.StringVar(&f.backupTo, "backup-to", "", "bucket to back up a SQLite database to, regularly, such as s3://acme-backups/shop; see \"animalstore db backup --help\"")
	cli.RegisterDuration(cmd, &f.Backups.Every, "backup-every",
		"how often to back up: a `duration` such as 1d, 12h or 30m")
	flags.IntVar(&f.Backups.Keep, "backup-keep", 7, "how many backups to keep in each place; older ones are deleted")
	cmd.MarkFlagDirname("backup-dir")
	cli.RegisterDuration(cmd, &f.EventsRetention, "events-retention",
		"how long to keep events: a `duration` such as 90d or 12h; 0 keeps them forever")
	cli.RegisterDuration(cmd, &f.ShutdownDelay, "shutdown-delay",
		"how long to keep serving after SIGTERM while /readyz says 503, so that load balancers notice: a `duration` such as 15s")
	flags.StringVar(&f.photosLimit, "photos-limit", "10GiB", "how much space all photos may take, such as 500MiB or 50GiB")
	return cmd
}

func runServer(ctx context.Context, f serveFlags, stdout, stderr io.Writer) error {
	if os.Getenv("GOGC") == "" {
		// Collecting less often takes a random page from about 150 to 112 µs, for a heap
		// that stays around 100 MiB under load.
		debug.SetGCPercent(400)
	}
	cfg, err := f.config(stderr)
	if err != nil {
		return cli.Usagef("%w", err)
	}
	ownerKey, _, err := cli.LookupEnvironment(ownerKeyVariable)
	if err != nil {
		return err
	}
	if err := inheritSockets(&cfg); err != nil {
		return err
	}
	cfg.SkipDelay = cli.UntilNextSignal
	cfg.Fatal = func(err error) {
		cfg.Log.Error("storage failed: stopping to avoid serving bad data or acknowledging unsaved writes", "err", err)
		os.Exit(exitError)
	}
	s, err := server.New(ctx, cfg)
	if err != nil {
		return startError(err)
	}
	greeted, err := firstKey(ctx, s, cfg, ownerKey, f.createOwnerKey, stdout)
	if err != nil {
		return errors.Join(err, s.Close())
	}
	shown := greeted && terminal.ScreenOf(stdout).Terminal
	if !shown && terminal.ScreenOf(stderr).Terminal {
		fmt.Fprintln(stderr, serverAddresses(s, cfg))
	}
	notify(os.Getenv("NOTIFY_SOCKET"), "READY=1", cfg.Log)
	return s.Run(ctx)
}

// startError names the flag to change if a server can't start with its setting,
// and the setting of systemd if that makes a directory read-only.
func startError(err error) error {
	named := nameFlag(err)
	if !errors.Is(err, syscall.EROFS) {
		return named
	}
	return fmt.Errorf("%w. If this is a systemd service, add the directory to ReadWritePaths= (\"systemctl edit animalstore\")", named)
}

// settingErrors name the flags of settings that a server can't start with.
var settingErrors = map[string]string{
	"ACME":           "--acme-cache: %w",
	"CertFile":       "load the certificate of --tls-cert and --tls-key: %w",
	"Listen":         "cannot serve: %w. Choose another address with --listen",
	"OpsListen":      "cannot serve metrics: %w. Choose another address with --ops-listen, or none with --ops-listen \"\"",
	"RedirectListen": "cannot redirect plain HTTP: %w. Choose another address with --redirect-http",
}

// nameFlag adds the flag to change to the error of a server that can't start.
func nameFlag(err error) error {
	var wrong *server.SettingError
	var backups *transfer.DirectoryError
	switch {
	case errors.As(err, &wrong):
		return fmt.Errorf(settingErrors[wrong.Setting], wrong.Err)
	case errors.As(err, &backups):
		return fmt.Errorf("--backup-dir: %w", backups.Err)
	}
	return databaseFlag{flag: "database"}.withFlag(err)
}

// serverAddresses lists the addresses of a server, for the person who started it.
func serverAddresses(s *server.Server, cfg server.Config) string {
	base := s.URL()
	console := "  Console   " + base + "/console\n"
	if cfg.NoConsole {
		console = ""
	}
	network := ""
	if url := s.NetworkURL(); url != "" {
		network = "  Network   " + url + " (plain HTTP: keys are sent unencrypted)\n"
	}
	return fmt.Sprintf(`animalstore (%s) is ready.

  API       %s/v1
  Docs      %s/docs
%s  Document  %s/openapi.yaml
  Database  %s
%s`, cfg.Environment, base, base, console, base, server.RedactDatabaseURL(cfg.Database), network)
}

// greeting is the addresses, a new owner key and a command to try it.
func greeting(s *server.Server, cfg server.Config, secret string) string {
	insecure := ""
	if strings.HasPrefix(s.URL(), "https:") {
		insecure = "\n(add --cacert FILE if your certificate is self-signed)"
	}
	return fmt.Sprintf(`%s
Your owner key, shown this once (plan business; read, write, admin):

  %s

Try it:%s

  curl -H "Authorization: Bearer %s" %s/v1/pets

`, serverAddresses(s, cfg), secret, insecure, secret, s.URL())
}

// firstKey creates the owner key of an empty database and prints it, with a greeting. A
// key that the operator supplied is imported instead and not printed, even if create is
// false.
func firstKey(ctx context.Context, s *server.Server, cfg server.Config, supplied string, create bool, stdout io.Writer) (greeted bool, err error) {
	if supplied == "" && !create {
		exist, err := s.HasKeys(ctx)
		if err == nil && !exist {
			cfg.Log.Info("the database has no keys yet: create one with \"animalstore keys create\"")
		}
		return false, err
	}
	owner, err := s.CreateOwnerKey(ctx, supplied)
	var invalid *animalstore.Error
	switch {
	case errors.Is(err, db.ErrFull):
		return false, fmt.Errorf("cannot store the owner key: the disk is full. Free some space and retry (%w)", err)
	case errors.As(err, &invalid):
		return false, cli.Usagef("%s: %s", ownerKeyVariable, invalid.Message)
	case err != nil:
		return false, err
	case supplied == "" && owner.Created:
		fmt.Fprint(stdout, greeting(s, cfg, owner.Secret))
		return true, nil
	case owner.Created:
		cfg.Log.Info("the key in " + ownerKeyVariable + " is the owner key")
	case supplied == "":
		cfg.Log.Info("the database has keys already. If you lost yours, create another", "command", newKeyCommand(cfg))
	case !owner.Exists:
		cfg.Log.Warn("the key in " + ownerKeyVariable + " was not imported: the database has keys already")
	}
	return false, nil
}

// newKeyCommand is the command that creates a key like the owner's. A password isn't shown:
// PGPASSWORD can supply it.
func newKeyCommand(cfg server.Config) string {
	command := "animalstore keys create --name owner --plan business --permissions read,write,admin"
	if cfg.Environment != animalstore.Production {
		command += " --environment " + string(cfg.Environment)
	}
	database := cfg.Database
	if postgres.Is(database) {
		database = postgres.ForTools(database)
	}
	return command + " --database " + shellWord(database)
}

// notify sends systemd a message such as READY=1, so that units that wait for this one
// can start. The socket is the value of NOTIFY_SOCKET, "" without systemd.
func notify(socket, message string, log *slog.Logger) {
	if socket == "" {
		return
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err == nil {
		defer conn.Close()
		_, err = conn.Write([]byte(message))
	}
	if err != nil {
		log.Warn("notifying systemd failed", "message", message, "err", err)
	}
}
