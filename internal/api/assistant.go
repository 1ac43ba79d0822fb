package api

import (
	"io"
	"net/http"
	"sync/atomic"

	"animalstore"
)

// assistantPath is where assistants send their requests.
const assistantPath = "/mcp"

// Assistant responds to a request of an assistant, whose body has been read. It calls the API
// with api, which adds the credential. allowed reports whether the key may call an operation.
type Assistant func(r *http.Request, body []byte, api http.Handler, allowed func(operation string) bool) *http.Response

// serveAssistant serves /mcp. A request is charged for the calls of the API that it makes, or
// as one if it makes none.
func (s *Server) serveAssistant(w http.ResponseWriter, r *request) error {
	r.pattern = assistantPath
	if err := s.authenticate(w, r); err != nil {
		return err
	}
	r.ctx = r.withKey(r.ctx)
	var calls atomic.Int64
	response, err := s.askAssistant(w, r, &calls)
	if calls.Load() == 0 {
		if err := s.limit(w, r); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	for name, values := range response.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(response.StatusCode)
	io.Copy(w, response.Body) // an error means that the client is gone
	return nil
}

// askAssistant returns the assistant's response, and counts its calls of the API.
func (s *Server) askAssistant(w http.ResponseWriter, r *request, calls *atomic.Int64) (*http.Response, error) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return nil, animalstore.Errorf(animalstore.MethodNotAllowed, "this method is not allowed here: use POST")
	}
	body, err := readBody(r)
	if err != nil {
		return nil, err
	}
	if err := checkMediaType(r.Header, typeJSON); err != nil {
		return nil, err
	}
	call := func(w http.ResponseWriter, in *http.Request) {
		calls.Add(1)
		in.Header["Authorization"] = r.Header["Authorization"]
		in.Header["X-Request-Id"] = []string{r.id}
		s.ServeHTTP(w, in)
	}
	allowed := func(operation string) bool {
		return r.key.Permissions.Allows(PermissionOf(operation))
	}
	return s.assistant(r.WithContext(r.Context()), body, http.HandlerFunc(call), allowed), nil
}
