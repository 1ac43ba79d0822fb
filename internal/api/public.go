package api

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"animalstore"
	"animalstore/internal/pages"
)

// public serves the paths outside /v1, which need no key. Except for health checks and
// assets, requests are charged to the address they come from, like those without a valid
// key.
func (s *Server) public(w http.ResponseWriter, r *request) error {
	if s.console != nil && underConsole(r.URL.Path) {
		return s.serveConsole(w, r)
	}
	if s.Assistant != nil && r.URL.Path == assistantPath {
		return s.serveAssistant(w, r)
	}
	switch {
	case r.URL.Path == "/livez", r.URL.Path == "/readyz": // not charged: health checks must never be limited
	case s.pages.Has(r.URL.Path) && strings.HasPrefix(r.URL.Path, pages.AssetsPrefix()): // not charged: a page is useless without them
	case r.URL.Path == "/openapi.yaml", r.URL.Path == "/openapi.json":
		if s.handlePreflight(w, r) {
			return nil
		}
		fallthrough
	default:
		if d := s.anonymous.Take(s.clientAddr(r.Request)); !d.Allowed {
			setLimitHeaders(w, d)
			return addressError(d)
		}
	}
	page := s.page
	switch {
	case r.URL.Path == "/livez":
		page = s.livez
	case r.URL.Path == "/readyz":
		page = s.readyz
	case s.SecurityContact != "" && r.URL.Path == securityPath:
		page = s.securityText
	case s.pages.Has(r.URL.Path):
	case strings.HasPrefix(r.URL.Path, "/docs/"): // for people, so the response is a page
		r.failed = animalstore.RouteNotFound // for the access log
		s.pages.ServeNotFound(w, r.Request)
		return nil
	default:
		return animalstore.Errorf(animalstore.RouteNotFound, "no such path: the API is under /v1 and described at /openapi.yaml")
	}
	r.pattern = r.URL.Path
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		return animalstore.Errorf(animalstore.MethodNotAllowed, "this method is not allowed here: use GET or HEAD")
	}
	return page(w, r)
}

// livez reports that the process is running. It doesn't depend on the storage,
// whose failure is no reason to restart a healthy process.
func (s *Server) livez(w http.ResponseWriter, r *request) error {
	return writeJSON(w, http.StatusOK, map[string]string{"status": "alive"})
}

// readyTimeout is how long /readyz waits for the database.
const readyTimeout = 2 * time.Second

// readyz reports whether requests would be served now.
func (s *Server) readyz(w http.ResponseWriter, r *request) error {
	if s.leaving.Load() {
		return animalstore.Errorf(animalstore.ShuttingDown, "this instance is shutting down: use another")
	}
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	if err := s.ping(ctx); err != nil {
		// A load balancer gets 503 regardless of the cause, which is in the log.
		if publicError(err).Code.Status() != http.StatusServiceUnavailable {
			err = fmt.Errorf("%w (%w)", animalstore.Errorf(animalstore.Unavailable, "storage is unavailable: use another instance"), err)
		}
		return err
	}
	return writeJSON(w, http.StatusOK, map[string]string{"status": "ready"})
}

func (s *Server) ping(ctx context.Context) (err error) {
	defer recoverError(&err)
	return s.DB.Ping(ctx)
}

// securityPath is where RFC 9116 has those look who found a vulnerability.
const securityPath = "/.well-known/security.txt"

// securityText says where to report a vulnerability. The RFC wants it to expire, so that
// nobody trusts an old copy.
func (s *Server) securityText(w http.ResponseWriter, r *request) error {
	expires := s.Now().UTC().AddDate(0, 0, 30).Truncate(24 * time.Hour)
	text := "Contact: " + s.SecurityContact + "\nExpires: " + expires.Format(time.RFC3339) + "\n"
	setHeader(w, "Content-Type", "text/plain; charset=utf-8")
	setHeader(w, "Content-Length", strconv.Itoa(len(text)))
	if r.Method == http.MethodHead {
		w.WriteHeader(http.StatusOK)
		return nil
	}
	_, err := io.WriteString(w, text)
	return err
}

// page serves the pages for browsers and the OpenAPI document.
func (s *Server) page(w http.ResponseWriter, r *request) error {
	s.pages.Serve(w, r.Request, s.IsHTTPS(r.Request))
	return nil
}

// IsHTTPS reports whether the client uses HTTPS, directly or to a trusted proxy.
func (s *Server) IsHTTPS(r *http.Request) bool {
	if r.TLS != nil {
		return true
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && s.trusted(peer.Addr().Unmap()) && strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
}
