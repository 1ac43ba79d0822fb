package server

import (
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
)

// serveRedirects redirects plain HTTP to HTTPS on an address of its own, until the
// server closes.
func (s *Server) serveRedirects() error {
	if s.cfg.RedirectListen == "" {
		return nil
	}
	listener, err := net.Listen("tcp", s.cfg.RedirectListen)
	if err != nil {
		return &ListenError{Redirect: true, Err: err}
	}
	var handler http.Handler = redirect{s.certs, s.listener.Addr()}
	if acme, ok := s.certs.(*acmeCertificates); ok {
		handler = acme.answerHTTPChallenges(handler)
	}
	srv := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: s.cfg.Timeouts.ReadHeader,
		ReadTimeout:       s.cfg.Timeouts.Read,
		WriteTimeout:      s.cfg.Timeouts.Write,
		IdleTimeout:       s.cfg.Timeouts.Idle,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          newErrorLog(s.cfg.Log),
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := srv.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.cfg.Log.Error("plain HTTP is no longer redirected", "err", err)
		}
	}()
	s.closers = append(s.closers, func() error {
		srv.Close() // nothing is lost: no redirect takes long
		<-done
		return nil
	})
	s.cfg.Log.Info("redirecting plain HTTP to HTTPS", "redirect", "http://"+reachable(listener.Addr()))
	return nil
}

// redirect sends clients to the same path over HTTPS. It only names hosts that the
// certificate is for, so nobody can use it to send people elsewhere.
//
// The status is 308 for every method: unlike after 301 and 302, clients repeat a POST
// as a POST, with its body.
type redirect struct {
	certs certificates
	https net.Addr
}

func (h redirect) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	host, port := splitHost(r.Host)
	target := r.URL.RequestURI()
	if r.Method == http.MethodConnect || !strings.HasPrefix(target, "/") {
		http.Error(w, "use HTTPS", http.StatusBadRequest)
		return
	}
	if !h.certs.covers(host) {
		http.Error(w, "this server has no certificate for the host in your request: use a name that it is known by", http.StatusMisdirectedRequest)
		return
	}
	w.Header().Set("Location", "https://"+h.authority(host, port)+target)
	w.WriteHeader(http.StatusPermanentRedirect)
}

// authority is the host and port to use for HTTPS. Who asked the standard port for
// plain HTTP gets the standard port for HTTPS, even if the server listens on another:
// then something in between maps both. All others get the port of the server.
func (h redirect) authority(host, port string) string {
	tcp, ok := h.https.(*net.TCPAddr)
	if port == "" || port == "80" || !ok || tcp.Port == 443 {
		if strings.Contains(host, ":") {
			return "[" + host + "]"
		}
		return host
	}
	return net.JoinHostPort(host, strconv.Itoa(tcp.Port))
}

// splitHost splits a Host header into the host, without brackets, and the port or "".
func splitHost(header string) (host, port string) {
	host, port, err := net.SplitHostPort(header)
	if err != nil {
		host, port = header, ""
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, ".")), port
}
