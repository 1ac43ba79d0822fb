package api

import (
	"net/http"
	"time"

	"animalstore"
)

// Observer is told of every request, on its way: methods have to be quick. They
// may be called at once from any goroutine.
type Observer interface {
	// Begin is called before anything is done for a request.
	Begin()
	// End is called after its answer. The pattern is that of the path, such as
	// /v1/pets/{petId}, and "" for a path at which there is nothing: neither it
	// nor the method is ever anything a client made up.
	End(method, pattern string, status int, took time.Duration)
	// Limited is called with what the limiter said to a request with a valid key:
	// why it was refused, or "".
	Limited(code animalstore.Code)
	// Failed is called with the code of every error that is answered.
	Failed(code animalstore.Code)
}

type nobody struct{}

func (nobody) Begin()                                 {}
func (nobody) End(string, string, int, time.Duration) {}
func (nobody) Limited(animalstore.Code)               {}
func (nobody) Failed(animalstore.Code)                {}

// observe tells the observer how a request ended.
func (s *Server) observe(w *response, r *request) {
	pattern := r.pattern
	if pattern == "" && underV1(r.URL.Path) { // refused before its path was looked at
		if res, _ := s.router.find(r.URL.Path); res != nil {
			pattern = res.pattern
		}
	}
	status := w.status
	if status == 0 { // nothing was written: net/http answers so
		status = http.StatusOK
	}
	s.observer.End(knownMethod(r.Method), pattern, status, time.Since(r.began))
}

// knownMethod is a method that requests are made with, or "other".
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "other"
}
