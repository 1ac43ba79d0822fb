package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"animalstore"
	"animalstore/internal/api"
	"animalstore/internal/db"
	"animalstore/internal/db/sqlite"
	"animalstore/internal/http1"
	"animalstore/internal/keys"
	"animalstore/internal/ratelimit"

	"github.com/spf13/cobra"
)

// The limits that keep one client from holding a connection for ever.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 10 * time.Second
	writeTimeout      = 15 * time.Second
	idleTimeout       = 60 * time.Second
	// net/http allows 4 KiB on top of its setting: 16 KiB in all.
	maxHeaderBytes = 12 << 10
	// drainTimeout is how long requests under way may still take at the end.
	drainTimeout = 10 * time.Second
	// drainNotice is how long new requests are still served after a signal,
	// each with the word to connect elsewhere. A client that keeps a busy
	// connection learns of the end by an answer instead of a cut.
	drainNotice = 500 * time.Millisecond
)

// ownerKeyVariable is not a flag: arguments can be read by other users.
const ownerKeyVariable = "ANIMALSTORE_OWNER_KEY"

type serveFlags struct {
	listen      string
	opsListen   string
	opsAsked    bool // opsListen was given, and is not the default
	database    string
	redis       string
	environment string
	tlsCert     string
	tlsKey      string
	proxies     []string
	corsOrigins []string
	accessLog   bool
	logFormat   string
}

func serveCommand() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the store over HTTP",
		Long: `Serve the store over HTTP until a SIGTERM or Ctrl-C.

On an empty database it makes an owner key first, and shows it this one time, on
standard output. The log is on standard error. Set ` + ownerKeyVariable + ` to
bring a key of your own instead.`,
		Example: `  animalstore serve
  animalstore serve --listen :8080 --database sqlite:/var/lib/animalstore/store.db
  animalstore serve --listen :8080 --database 'postgres://db1,db2/store?target_session_attrs=read-write'
  animalstore serve --environment staging --listen 127.0.0.1:8090 --database sqlite:staging.db`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.opsAsked = cmd.Flags().Changed("ops-listen")
			return serve(cmd.Context(), f, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.listen, "listen", "127.0.0.1:8080", "address and port to serve on; port 0 takes a free one")
	flags.StringVar(&f.opsListen, "ops-listen", defaultOpsListen, "address and port for metrics and profiles; \"\" for none")
	flags.StringVar(&f.database, "database", "sqlite:animalstore.db", databaseUsage)
	flags.StringVar(&f.redis, "redis", "", "Redis through which several servers share limits: redis://HOST:PORT or rediss://…")
	flags.StringVar(&f.environment, "environment", "production", "deployment this is, production or staging: keys of the other are refused")
	flags.StringVar(&f.tlsCert, "tls-cert", "", "file with the certificate chain, to serve HTTPS")
	flags.StringVar(&f.tlsKey, "tls-key", "", "file with the certificate's private key")
	flags.StringSliceVar(&f.proxies, "trusted-proxies", nil, "networks of proxies whose X-Forwarded-For is believed, such as 10.0.0.0/8")
	flags.StringSliceVar(&f.corsOrigins, "cors-origins", nil, "web origins whose pages may call the API, such as https://shop.example")
	flags.BoolVar(&f.accessLog, "access-log", false, "log a line for every request")
	flags.StringVar(&f.logFormat, "log-format", "text", "how to log: text or json")
	return cmd
}

// A server keeps few megabytes. Under load it would collect garbage dozens of
// times a second, whenever there is as much of it as is kept. Ballast is memory that
// is never touched and so costs none, but counts as kept where the collector
// decides. In return it tolerates less garbage, so that one with more to keep does
// not take twice that.
const (
	ballast          = 8 << 20
	garbageTolerated = 60 // percent
)

func serve(ctx context.Context, f serveFlags, stdout, stderr io.Writer) error {
	untouched := make([]byte, ballast)
	defer runtime.KeepAlive(untouched)
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbageTolerated)
	}
	log, err := newLogger(f.logFormat, stderr)
	if err != nil {
		return err
	}
	if f.listen == "" { // to net.Listen that is any port, open to the world
		return usageError{errors.New("--listen must be an address and port, such as 127.0.0.1:8080")}
	}
	env, err := animalstore.ParseEnvironment(f.environment)
	if err != nil {
		return err
	}
	if err := checkListen("--listen", f.listen); err != nil {
		return err
	}
	if f.opsListen != "" {
		if err := checkListen("--ops-listen", f.opsListen); err != nil {
			return err
		}
	}
	if err := checkRedis(f.redis); err != nil {
		return err
	}
	tlsConfig, err := loadTLS(f.tlsCert, f.tlsKey)
	if err != nil {
		return err
	}
	if err := checkOrigins(f.corsOrigins); err != nil {
		return err
	}
	proxies, err := parseProxies(f.proxies)
	if err != nil {
		return err
	}
	store, err := openDatabase(ctx, f.database, sqlite.Options{
		Serve: true,
		Fatal: func(err error) {
			log.Error("storage failed: stopping, so that nothing is answered that is not on disk", "err", err)
			os.Exit(exitError)
		},
	})
	if err != nil {
		return err
	}
	defer func() {
		if err := store.Close(); err != nil {
			log.Error("close database", "err", err)
		}
	}()
	metrics := newMetrics()
	limiter, clock, closeLimiter, err := openLimiter(f.redis, env, store, metrics, log)
	if err != nil {
		return err
	}
	defer closeLimiter()
	usage := ratelimit.NewUsage(store, clock, log)
	stopSaving := runInBackground(limiter.Run, usage.Run, sweeper(store))
	defer stopSaving() // after the last request, before the database closes
	handler := api.New(api.Config{
		DB:             store,
		Keys:           keys.NewChecker(env, store, log, time.Now),
		Limiter:        limiter,
		Usage:          usage,
		Log:            log,
		TrustedProxies: proxies,
		CORSOrigins:    f.corsOrigins,
		AccessLog:      f.accessLog,
		Observer:       metrics,
		Environment:    env,
		Version:        versionString(),
	})
	stopOps, err := serveOps(f.opsListen, f.opsAsked, metrics, log)
	if err != nil {
		return err
	}
	defer stopOps()
	// The port is taken before the owner key is made, so that a start that
	// fails does not swallow the key.
	tcp, err := net.Listen("tcp", f.listen)
	if err != nil {
		return fmt.Errorf("cannot serve: %w. Choose another address with --listen", err)
	}
	base := "http://" + reachable(tcp.Addr())
	if tlsConfig != nil {
		base = "https://" + reachable(tcp.Addr())
	}
	secret, err := makeOwnerKey(ctx, store, env, log)
	if err != nil {
		tcp.Close()
		return err
	}
	if secret != "" {
		greet(stdout, base, shownDatabase(f.database), env, secret)
	}
	log.Info("serving", "api", base+"/v1", "environment", env, "version", versionString())
	return run(ctx, tcp, tlsConfig, handler, log)
}

// run serves until ctx ends, then lets every request under way finish.
func run(ctx context.Context, tcp net.Listener, tlsConfig *tls.Config, handler *api.Server, log *slog.Logger) error {
	srv := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	plain := api.Plain
	if tlsConfig != nil {
		plain = nil
	}
	l := http1.Listen(tcp, srv, plain, log)
	var secured net.Listener = l
	if tlsConfig != nil {
		secured = tls.NewListener(l, tlsConfig)
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(secured) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	log.Info("shutting down: finishing the requests under way")
	handler.Drain()
	time.Sleep(drainNotice)
	ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	if err := l.Shutdown(ctx); err != nil {
		return fmt.Errorf("some requests took longer than %v to finish and were cut off: %w", drainTimeout, err)
	}
	log.Info("stopped")
	return nil
}

// makeOwnerKey makes the first key of an empty database and returns its secret,
// or "" where there are keys already or the operator brought the secret.
func makeOwnerKey(ctx context.Context, store db.DB, env animalstore.Environment, log *slog.Logger) (string, error) {
	secret := os.Getenv(ownerKeyVariable)
	brought := secret != ""
	if !brought {
		secret = keys.Mint(env)
	} else if err := keys.ValidateForeign(secret, env); err != nil {
		return "", fmt.Errorf("%s: %w", ownerKeyVariable, err)
	}
	owner := animalstore.NewKey{
		Name:        "owner",
		Plan:        animalstore.PlanBusiness,
		Permissions: animalstore.Read | animalstore.Write | animalstore.Admin,
		Environment: env,
	}
	if err := owner.Validate(); err != nil {
		return "", err
	}
	created, err := store.CreateFirstKey(ctx, owner, keys.Hash(secret), animalstore.At(time.Now()))
	switch {
	case err != nil:
		return "", fmt.Errorf("make the owner key: %w", err)
	case brought && created:
		log.Info("the key in " + ownerKeyVariable + " is the owner key")
		return "", nil
	case brought:
		_, found, err := store.KeyByHash(ctx, keys.Hash(secret))
		if err == nil && !found {
			log.Warn("the key in " + ownerKeyVariable + " was not imported: the database has keys already")
		}
		return "", err
	case created:
		return secret, nil
	}
	return "", nil
}

func greet(w io.Writer, base, database string, env animalstore.Environment, secret string) {
	insecure := ""
	if strings.HasPrefix(base, "https:") {
		insecure = "\n(add --cacert FILE if your certificate is self-signed)"
	}
	fmt.Fprintf(w, `animalstore (%s) is ready.

  API       %s/v1
  Docs      %s/docs
  Document  %s/openapi.yaml
  Database  %s

Your owner key, shown this once (plan business; read, write, admin):

  %s

Try it:%s

  curl -H "Authorization: Bearer %s" %s/v1/pets

`, env, base, base, base, database, secret, insecure, secret, base)
}

// reachable is an address under which a listener on this machine is found.
func reachable(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return addr.String()
	}
	return net.JoinHostPort("127.0.0.1", fmt.Sprint(tcp.Port))
}

// checkListen refuses what is no address and port. An empty host would be every
// address of the machine, so it has to be said.
func checkListen(flag, listen string) error {
	_, port, err := net.SplitHostPort(listen)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil || port == "" {
		return usageError{fmt.Errorf("%s must be an address and a port, such as 127.0.0.1:8080 or :8080 for every address, not %q", flag, listen)}
	}
	return nil
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

func loadTLS(certFile, keyFile string) (*tls.Config, error) {
	if certFile == "" && keyFile == "" {
		return nil, nil
	}
	if certFile == "" || keyFile == "" {
		return nil, usageError{errors.New("--tls-cert and --tls-key go together: give both or neither")}
	}
	cert, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("load the certificate of --tls-cert and --tls-key: %w", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2", "http/1.1"}}, nil
}

// runInBackground starts these and returns a function that ends them and waits.
func runInBackground(runs ...func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, run := range runs {
		wg.Go(func() { run(ctx) })
	}
	return func() {
		cancel()
		wg.Wait()
	}
}

func parseProxies(networks []string) ([]netip.Prefix, error) {
	var prefixes []netip.Prefix
	for _, n := range networks {
		prefix, err := netip.ParsePrefix(n)
		if addr, addrErr := netip.ParseAddr(n); addrErr == nil {
			prefix, err = netip.PrefixFrom(addr, addr.BitLen()), nil
		}
		if err != nil {
			return nil, usageError{fmt.Errorf("--trusted-proxies: %q is not a network: write it like 10.0.0.0/8 or 192.0.2.7", n)}
		}
		prefixes = append(prefixes, prefix.Masked())
	}
	return prefixes, nil
}

// checkOrigins refuses what no browser would ever send as an origin.
func checkOrigins(origins []string) error {
	for _, o := range origins {
		scheme, host, ok := strings.Cut(o, "://")
		if !ok || scheme != "http" && scheme != "https" || host == "" || strings.ContainsAny(host, "/*? ") {
			return usageError{fmt.Errorf("--cors-origins: %q is not an origin: write it like https://shop.example, without a path", o)}
		}
	}
	return nil
}
