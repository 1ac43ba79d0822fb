package server

import (
	"bytes"
	"errors"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"os"
	"slices"
	"strings"

	"animalstore/internal/certs"
)

// SettingError reports a setting that a server can't start with: an address to listen on, or
// certificates.
type SettingError struct {
	Setting string // the field of Config
	Err     error
}

func (e *SettingError) Error() string { return e.Setting + ": " + e.Err.Error() }
func (e *SettingError) Unwrap() error { return e.Err }

// openCertificates sets s.certs, unless the server serves plain HTTP.
func (s *Server) openCertificates() (err error) {
	setting := "CertFile"
	switch cfg := s.cfg; {
	case cfg.CertFile != "":
		s.certs, err = certs.Files(cfg.CertFile, cfg.KeyFile, cfg.Log)
	case len(cfg.ACME.Domains) > 0:
		setting = "ACME"
		s.certs, err = certs.FromAuthority(cfg.ACME, cfg.Version, cfg.Log)
	case cfg.RedirectListen != "":
		err = errors.New("redirecting to HTTPS needs a certificate")
	}
	if err != nil {
		return &SettingError{setting, err}
	}
	return nil
}

// serveRedirects redirects plain HTTP to HTTPS until the server closes.
func (s *Server) serveRedirects() error {
	if s.cfg.RedirectListen == "" {
		return nil
	}
	listener, err := net.Listen("tcp", s.cfg.RedirectListen)
	if err != nil {
		return &SettingError{"RedirectListen", err}
	}
	s.serveSecondary(listener, &http.Server{
		Handler:      certs.Redirect(s.certs, s.listener.Addr()),
		WriteTimeout: s.cfg.Timeouts.Write,
	}, "plain HTTP is no longer redirected")
	s.cfg.Log.Info("redirecting plain HTTP to HTTPS", "redirect", "http://"+dialAddress(listener.Addr()))
	return nil
}

// serveOps serves metrics and profiles on a separate address, for the operator
// only, until the server closes.
func (s *Server) serveOps() error {
	if s.cfg.OpsListen == "" {
		return nil
	}
	listener := s.cfg.OpsListener
	if listener == nil {
		var err error
		listener, err = net.Listen("tcp", s.cfg.OpsListen)
		if err != nil && s.cfg.OpsOptional {
			s.cfg.Log.Warn("no metrics and profiles: their address is taken", "address", s.cfg.OpsListen, "err", err)
			return nil
		}
		if err != nil {
			return &SettingError{"OpsListen", err}
		}
	}
	// No WriteTimeout: a profile takes as long as the request says.
	s.serveSecondary(listener, &http.Server{Handler: s.opsHandler()}, "metrics and profiles are no longer served")
	s.cfg.Log.Info("metrics and profiles", "ops", "http://"+dialAddress(listener.Addr())+"/metrics")
	return nil
}

// serveSecondary serves on a second listener until the server closes. It logs failed if
// that ends earlier. Requests in progress at the end are cut off: none of them changes
// anything.
func (s *Server) serveSecondary(listener net.Listener, srv *http.Server, failed string) {
	srv.ReadHeaderTimeout = s.cfg.Timeouts.ReadHeader
	srv.ReadTimeout = s.cfg.Timeouts.Read
	srv.IdleTimeout = s.cfg.Timeouts.Idle
	srv.MaxHeaderBytes = maxHeaderBytes
	srv.ErrorLog = newErrorLog(s.cfg.Log)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := srv.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.cfg.Log.Error(failed, "err", err)
		}
	}()
	s.closers = append(s.closers, func() error {
		srv.Close()
		<-done
		return nil
	})
}

// opsHandler serves metrics and profiles. They need no key, so a web page whose domain
// resolves to this address (DNS rebinding) could read them through its visitors' browsers.
// Checking the Host header prevents that.
func (s *Server) opsHandler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.metrics.Handler())
	// Without cmdline: --database may have a password.
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	names := opsHosts(s.cfg.OpsListen)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if !isOpsHost(r.Host, names) {
			http.Error(w, "metrics and profiles are only served under an IP address or "+strings.Join(names, ", ")+": use one of these, or listen on the name you use", http.StatusMisdirectedRequest)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// opsHosts are the names under which metrics and profiles are served, in addition to any IP
// address, which a web page can't take over: localhost, the name to listen on, and the
// machine's name.
func opsHosts(listen string) []string {
	names := []string{"localhost"}
	if name, _, err := net.SplitHostPort(listen); err == nil && name != "" {
		names = append(names, name)
	}
	if name, err := os.Hostname(); err == nil {
		names = append(names, name)
	}
	return names
}

// isOpsHost reports whether the Host header of a request is an IP address or one of the
// names.
func isOpsHost(header string, names []string) bool {
	host := header
	if name, _, err := net.SplitHostPort(header); err == nil {
		host = name
	}
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return true
	}
	host = strings.TrimSuffix(host, ".")
	return slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, host) })
}

// errorLog receives net/http's messages, one per call. Panics and failed accepts are
// errors. The rest is about clients that don't speak TLS or HTTP, and anyone on the
// internet can cause any number of those.
type errorLog struct{ log *slog.Logger }

func newErrorLog(l *slog.Logger) *log.Logger { return log.New(errorLog{l}, "", 0) }

var seriousErrors = [][]byte{
	[]byte("http: panic serving "),
	[]byte("http2: panic serving "),
	[]byte("http: Accept error: "),
}

func (w errorLog) Write(message []byte) (int, error) {
	text := string(bytes.TrimSuffix(message, []byte("\n")))
	for _, prefix := range seriousErrors {
		if bytes.HasPrefix(message, prefix) {
			w.log.Error(text)
			return len(message), nil
		}
	}
	w.log.Debug(text)
	return len(message), nil
}
