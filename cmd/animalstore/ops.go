package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
)

// defaultOpsListen is where metrics and profiles are unless told otherwise.
const defaultOpsListen = "127.0.0.1:8081"

// serveOps serves metrics and profiles on an address of their own, for nobody but
// the operator, until stop is called. If the address is taken, that is an error
// where it was asked for; a second server on a machine has to do without.
func serveOps(listen string, asked bool, m *metrics, log *slog.Logger) (stop func(), err error) {
	if listen == "" {
		return func() {}, nil
	}
	listener, err := net.Listen("tcp", listen)
	if err != nil && asked {
		return nil, fmt.Errorf("cannot serve metrics: %w. Choose another address with --ops-listen, or none with --ops-listen \"\"", err)
	}
	if err != nil {
		log.Warn("no metrics and profiles: their address is taken, choose another with --ops-listen", "err", err)
		return func() {}, nil
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", m.handler())
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	// No limit on writing: a profile takes as long as it is asked to.
	srv := &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := srv.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("metrics and profiles are not served any more", "err", err)
		}
	}()
	log.Info("metrics and profiles", "ops", "http://"+reachable(listener.Addr())+"/metrics")
	return func() {
		srv.Close()
		<-done
	}, nil
}
