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
		Handler:           s.opsHandler(),
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

func (s *Server) opsHandler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.metrics.Handler())
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}
