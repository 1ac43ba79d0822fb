package api

import (
	"net/http"
	"path"
	"strings"
	"time"

	"animalstore"
	"animalstore/internal/db"
)

// underConsole reports whether the console serves a path. Unclean ones are 404, as
// everywhere; the console's ServeMux would redirect them.
func underConsole(p string) bool {
	return (p == "/console" || strings.HasPrefix(p, "/console/")) && path.Clean(p) == strings.TrimSuffix(p, "/")
}

// serveConsole passes a request on to the console. Its pages are charged to the key of
// the session by the calls they make; see [Server.ChargeAddress] for the others.
func (s *Server) serveConsole(w http.ResponseWriter, r *request) error {
	r.pattern = "/console" // one for all of them: paths contain ids
	s.console.ServeHTTP(w, r.Request)
	isUpload := strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/")
	if isUpload || strings.HasPrefix(w.Header().Get("Content-Type"), typeEventStream) {
		r.waited = time.Since(r.began)
	}
	return nil
}

// ServeAPI serves a request as the key whose secret has this hash, without an Authorization
// header. It is for the console, whose sessions don't know the secret itself. All checks
// and limits apply, except that images aren't charged. Without a hash, the request has its
// own credential.
func (s *Server) ServeAPI(w http.ResponseWriter, r *http.Request, secret *db.KeyHash) {
	s.handle(w, r, secret)
}

// isFree reports whether a request isn't charged: one for an image on a page of the
// console, which is useless without it.
func (r *request) isFree() bool {
	return r.session != nil && IsImage(r.URL.Path) && (r.Method == http.MethodGet || r.Method == http.MethodHead)
}

// KeyOf returns the key whose secret has this hash. The error has code invalid_api_key if
// the key doesn't work here, or no longer, key_suspended if it is suspended, and
// address_not_allowed if it doesn't work from the address of the request.
func (s *Server) KeyOf(r *http.Request, hash db.KeyHash) (*animalstore.Key, error) {
	key, err := s.Keys.CheckHash(r.Context(), hash)
	if err != nil {
		return key, err
	}
	return key, s.checkAccess(r, key)
}

// PetETag is the ETag of a pet, which lists don't have.
func (s *Server) PetETag(pet animalstore.Pet) string { return etagOf(encodePet(&pet)) }

// OrderETag is the ETag of an order, which lists don't have.
func (s *Server) OrderETag(order animalstore.Order) string { return etagOf(encode(order)) }

// ChargeAddress charges a request to the address it comes from, like one without a valid
// key. Over the limit, it returns an error and how many seconds to wait.
func (s *Server) ChargeAddress(r *http.Request) (retryAfter int64, err error) {
	d := s.anonymous.Take(s.clientAddr(r))
	if d.Allowed {
		return 0, nil
	}
	return d.RetryAfter, addressError(d)
}
