// Package server assembles and runs the service: database, limiter, API and listeners.
// The serve command, clienttest, the API's tests and the benchmarks all start it.
//
// It reads no flags and no environment variables: everything is in [Config].
package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"animalstore/internal/api"
	"animalstore/internal/assistant"
	"animalstore/internal/certs"
	"animalstore/internal/db"
	"animalstore/internal/db/transfer"
	"animalstore/internal/events"
	"animalstore/internal/http1"
	"animalstore/internal/keys"
	"animalstore/internal/metrics"
	"animalstore/internal/ratelimit"
)

// Server is a service that is ready to run.
type Server struct {
	cfg     Config
	db      db.DB
	engine  db.DB // the database that db wraps in tests
	limiter limiter
	usage   *ratelimit.Usage
	hub     *events.Hub

	checkWebhookURL func(ctx context.Context, url string) error
	stopWebhooks    func() error
	testClock       bool // a test set the clock

	metrics  *metrics.Metrics
	handler  *api.Server
	listener net.Listener
	certs    certs.Certificates // nil without TLS
	// closers release the server's resources. They run in reverse order.
	closers  []func() error
	closeErr error
	stopBy   time.Time           // see deadline
	backups  *transfer.Scheduler // nil without Config.Backups
}

// New opens the database and the ports. [Server.Run] serves and then closes everything;
// if Run isn't called, call [Server.Close].
func New(ctx context.Context, cfg Config) (_ *Server, err error) {
	s := &Server{cfg: cfg.withDefaults(), testClock: cfg.Hooks.Now != nil}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if err := s.openCertificates(); err != nil {
		return nil, err
	}
	if err := s.openDatabase(ctx); err != nil {
		return nil, err
	}
	s.metrics = metrics.New(s.cfg.Version)
	clock, err := s.openLimiter()
	if err != nil {
		return nil, err
	}
	s.usage = ratelimit.NewUsage(s.db, clock, s.cfg.Log)
	if !s.cfg.Hooks.NoBackground {
		s.closers = append(s.closers, s.stopAndSave(runInBackground(s.limiter.Run, s.usage.Run, s.sweep)))
	}
	s.startHub()
	s.startWebhooks()
	s.handler = s.newHandler()
	if !s.cfg.Hooks.NoBackground {
		s.closeInTime("saving failed requests", runInBackground(s.handler.RunFailures))
	}
	s.addMetrics()
	if err := s.serveOps(); err != nil {
		return nil, err
	}
	if err := s.listen(); err != nil {
		return nil, err
	}
	if err := s.serveRedirects(); err != nil {
		return nil, err
	}
	if err := s.startBackups(ctx); err != nil { // last: a start that fails makes no backup
		return nil, err
	}
	return s, nil
}

func (s *Server) newHandler() *api.Server {
	cfg := api.Config{
		Settings:        s.cfg.Settings,
		Now:             s.cfg.Hooks.Now,
		DB:              s.db,
		Events:          s.hub,
		Keys:            keys.NewChecker(s.cfg.Environment, s.db, s.cfg.Hooks.Now),
		Limiter:         s.limiter,
		Usage:           s.usage,
		Observer:        s.metrics,
		RequestTimeout:  s.cfg.Hooks.RequestTimeout,
		CheckWebhookURL: s.checkWebhookURL,
		State:           s.state,
	}
	if s.cfg.Hooks.Observer != nil {
		cfg.Observer = s.cfg.Hooks.Observer
	}
	if !s.cfg.NoConsole {
		cfg.NewConsole = s.newConsole
	}
	if !s.cfg.NoMCP {
		cfg.Assistant = assistant.New(s.cfg.Version, s.cfg.Log).Respond
	}
	return api.New(cfg)
}

func (s *Server) listen() error {
	if s.listener = s.cfg.Listener; s.listener == nil {
		l, err := net.Listen("tcp", s.cfg.Listen)
		if err != nil {
			return &SettingError{"Listen", err}
		}
		s.listener = l
	}
	s.closers = append(s.closers, func() error {
		s.listener.Close() // Run has closed it, unless it was never called
		return nil
	})
	return nil
}

// Run serves until ctx ends and the shutdown delay is over. Then it lets every request in progress finish and closes
// the server. "stopped" is the last line of its log.
func (s *Server) Run(ctx context.Context) error {
	err := s.serve(ctx)
	if closeErr := s.Close(); closeErr != nil {
		s.cfg.Log.Error("close the server", "err", closeErr)
	}
	if err == nil {
		s.cfg.Log.Info("stopped")
	}
	return err
}

func (s *Server) serve(ctx context.Context) error {
	var secure *tls.Config
	if s.certs != nil {
		secure = s.certs.Config()
		defer runInBackground(s.certs.Run)()
	}
	front := s.newFrontend(secure)
	if url := s.NetworkURL(); url != "" {
		s.cfg.Log.Info("listening on a network, over plain HTTP", "network", url)
	}
	s.cfg.Log.Info("serving", "api", s.URL()+"/v1", "docs", s.URL()+"/docs", "database", RedactDatabaseURL(s.cfg.Database), "environment", s.cfg.Environment, "version", s.cfg.Version)
	failed := make(chan error, 1)
	go func() { failed <- front.Serve() }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	if s.cfg.ShutdownDelay > 0 {
		if err := s.delayShutdown(failed); err != nil {
			return fmt.Errorf("serve: %w", err)
		}
	}
	s.deadline()
	go s.stopWebhooks() // Close waits for it
	if err := s.drain(front); err != nil {
		return err
	}
	<-failed
	return nil
}

// frontend serves the API on the listener.
type frontend interface {
	Serve() error
	Shutdown(context.Context) error
}

// newFrontend returns package http1's server, which is faster, or net/http's, which TLS
// needs.
func (s *Server) newFrontend(secure *tls.Config) frontend {
	srv := s.newHTTPServer()
	if secure != nil || s.cfg.NoFastPath || s.cfg.Hooks.Middleware != nil {
		srv.TLSConfig = secure
		return newNetHTTP(srv, s.listener)
	}
	return http1.NewServer(s.listener, srv, onFastPath, s.cfg.Log)
}

// onFastPath reports whether package http1 may serve requests for a target. It may serve
// the API, which writes each response in one piece, except event streams, uploads and
// images.
func onFastPath(target string) bool {
	path, _, _ := strings.Cut(target, "?")
	switch {
	case !strings.HasPrefix(path, "/v1/"), path == "/v1/events",
		strings.HasPrefix(path, "/v1/pets/") && strings.HasSuffix(path, "/photos"), api.IsImage(path):
		return false
	}
	return true
}

func (s *Server) newHTTPServer() *http.Server {
	var handler http.Handler = s.handler
	if s.cfg.Hooks.Middleware != nil {
		handler = s.cfg.Hooks.Middleware(handler)
	}
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: s.cfg.Timeouts.ReadHeader,
		ReadTimeout:       s.cfg.Timeouts.Read,
		WriteTimeout:      s.cfg.Timeouts.Write,
		IdleTimeout:       s.cfg.Timeouts.Idle,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          newErrorLog(s.cfg.Log),
	}
}

// drain lets requests in progress finish and closes all connections.
func (s *Server) drain(front frontend) error {
	s.cfg.Log.Info("shutting down: finishing the requests in progress")
	s.handler.Drain()
	time.Sleep(s.cfg.Timeouts.DrainNotice)
	ctx := context.Background()
	if s.cfg.Timeouts.Drain > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.cfg.Timeouts.Drain)
		defer cancel()
	}
	if err := front.Shutdown(ctx); err != nil {
		return fmt.Errorf("some requests took longer than %v to finish and were cut off: %w", s.cfg.Timeouts.Drain, err)
	}
	return nil
}

// Close releases the ports and the database of a server that isn't running. It saves
// the counters before it closes the database. Another call returns the same error.
func (s *Server) Close() error {
	for len(s.closers) > 0 {
		last := len(s.closers) - 1
		s.closeErr = errors.Join(s.closeErr, s.closers[last]())
		s.closers = s.closers[:last]
	}
	return s.closeErr
}

// URL is the address of the server without a path, as a client on this machine
// would write it.
func (s *Server) URL() string {
	scheme := "http://"
	if s.certs != nil {
		scheme = "https://"
	}
	return scheme + dialAddress(s.listener.Addr())
}

// dialAddress returns addr, or the loopback address if addr means all addresses.
func dialAddress(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return addr.String()
	}
	return net.JoinHostPort("127.0.0.1", fmt.Sprint(tcp.Port))
}

// NetworkURL is the address for other machines if they can use the server over plain HTTP.
// Otherwise it is "", also with TLS, whose certificate has the right name.
func (s *Server) NetworkURL() string {
	tcp, ok := s.listener.Addr().(*net.TCPAddr)
	if !ok || s.certs != nil || tcp.IP.IsLoopback() || tcp.Zone != "" {
		return ""
	}
	ip := tcp.IP
	if ip.IsUnspecified() {
		if ip = networkAddress(ip.To4() == nil); ip == nil {
			return ""
		}
	}
	return "http://" + net.JoinHostPort(ip.String(), fmt.Sprint(tcp.Port))
}

// networkAddress returns this machine's first address on a network, preferably one of IPv4,
// or nil.
func networkAddress(orIPv6 bool) (found net.IP) {
	addresses, _ := net.InterfaceAddrs() // without them, the server works all the same
	for _, a := range addresses {
		network, ok := a.(*net.IPNet)
		switch {
		case !ok || !network.IP.IsGlobalUnicast():
		case network.IP.To4() != nil:
			return network.IP
		case orIPv6 && found == nil:
			found = network.IP
		}
	}
	return found
}

// DB is the database as the service uses it.
func (s *Server) DB() db.DB { return s.db }

// Handler is the API.
func (s *Server) Handler() *api.Server { return s.handler }

// Save stores the counters, the usage and the failed requests that a server otherwise
// saves in the background.
func (s *Server) Save(ctx context.Context) error {
	saver, ok := s.limiter.(interface{ Save(context.Context) error })
	if ok {
		if err := saver.Save(ctx); err != nil {
			return err
		}
	}
	if err := s.usage.Save(ctx); err != nil || s.handler == nil {
		return err
	}
	return s.handler.SaveFailures(ctx)
}
