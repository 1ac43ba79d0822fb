package server

import (
	"errors"
	"net"
	"net/http"
	"net/http/pprof"
)

// serveOps serves metrics and profiles on a separate address, for the operator
// only, until the server closes.
func (s *Server) serveOps() error {
	if s.cfg.OpsListen == "" {
		return nil
	}
	listener, err := net.Listen("tcp", s.cfg.OpsListen)
	if err != nil && s.cfg.OpsOptional {
		s.opsErr = err
		return nil
	}
	if err != nil {
		return &ListenError{Ops: true, Err: err}
	}
	srv := &http.Server{
		Handler:           s.opsHandler(listener.Addr()),
		ReadHeaderTimeout: s.cfg.Timeouts.ReadHeader,
		ReadTimeout:       s.cfg.Timeouts.Read,
		IdleTimeout:       s.cfg.Timeouts.Idle,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          newErrorLog(s.cfg.Log),
		// No WriteTimeout: a profile takes as long as the request says.
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := srv.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.cfg.Log.Error("metrics and profiles are no longer served", "err", err)
		}
	}()
	s.closers = append(s.closers, func() error {
		srv.Close()
		<-done
		return nil
	})
	s.cfg.Log.Info("metrics and profiles", "ops", "http://"+reachable(listener.Addr())+"/metrics")
	return nil
}

// opsHandler serves metrics and profiles to requests whose Host is a name of this
// server. They need no key, so a web page whose own name leads to this address (DNS
// rebinding) could otherwise read them through its visitors' browsers.
func (s *Server) opsHandler(addr net.Addr) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.metrics.Handler())
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	hosts := newOpsHosts(s.cfg.OpsListen, addr)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if !hosts.include(r.Host) {
			http.Error(w, "metrics and profiles are only served under "+hosts.String()+": use one of these in the URL, or listen on the name you use with --ops-listen", http.StatusMisdirectedRequest)
			return
		}
		mux.ServeHTTP(w, r)
	})
}
