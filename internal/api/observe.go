package api

import (
	"net/http"
	"time"

	"animalstore"
)

// Observer is notified of every request. Requests wait for its methods, so they
// must be quick. They may be called concurrently.
type Observer interface {
	// Begin is called when a request arrives.
	Begin()
	// End is called after the response. pattern is that of the path, such as
	// /v1/pets/{petId}, and "" for an unknown path. Both it and the method come
	// from a fixed set, never from the client.
	End(method, pattern string, status int, took time.Duration)
	// Limited is called with the limiter's decision on a request with a valid key:
	// why it was refused, or "".
	Limited(code animalstore.Code)
	// Failed is called with the code of every error response.
	Failed(code animalstore.Code)
}

// noopObserver is used when there is no Observer.
type noopObserver struct{}

func (noopObserver) Begin()                                 {}
func (noopObserver) End(string, string, int, time.Duration) {}
func (noopObserver) Limited(animalstore.Code)               {}
func (noopObserver) Failed(animalstore.Code)                {}

// observe reports the end of a request to the observer.
func (s *Server) observe(w *response, r *request) {
	pattern := r.pattern
	if pattern == "" && underV1(r.URL.Path) { // refused before routing
		if res, _, _ := s.router.find(r.URL.Path); res != nil {
			pattern = res.pattern
		}
	}
	status := w.status
	if status == 0 { // nothing was written: net/http sends this
		status = http.StatusOK
	}
	ended := time.Now()
	if underV1(r.URL.Path) {
		s.lastHour.add(s.at(ended), status)
	}
	s.observer.End(knownMethod(r.Method), pattern, status, ended.Sub(r.began)-r.waited)
}

// knownMethod is the method if it's a common one, or else "other".
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "other"
}
