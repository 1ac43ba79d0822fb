package api

import (
	"cmp"
	"io"
	"net/http"

	"animalstore"
)

// assistantPath is where assistants send their requests.
const assistantPath = "/mcp"

// Assistant responds to a request of an assistant, whose body has been read. It calls the API
// with api, which adds the credential. allowed reports whether the key may call an operation.
// A message that makes no such call is charged with charge before it is handled. If that
// returns false, so that the key gets 429, the response is nil.
type Assistant func(r *http.Request, body []byte, charge func() bool, api http.Handler, allowed func(operation string) bool) *http.Response

// serveAssistant serves /mcp. A request is charged for the calls of the API that it makes, or
// as one if it makes none.
func (s *Server) serveAssistant(w http.ResponseWriter, r *request) error {
	r.pattern = assistantPath
	if err := s.authenticate(w, r); err != nil {
		return err
	}
	r.ctx = r.withKey(r.ctx)
	body, err := readMessage(w, r)
	if err != nil {
		return cmp.Or(s.limit(w, r), err)
	}
	var charged bool
	var refused error
	charge := func() bool {
		charged, refused = true, s.limit(w, r)
		return refused == nil
	}
	call := func(inner http.ResponseWriter, in *http.Request) {
		charged = true
		in.Header["Authorization"] = r.Header["Authorization"]
		in.Header["X-Request-Id"] = []string{r.id}
		s.ServeHTTP(inner, in)
		for _, name := range []string{limitHeader, remainingHeader, resetHeader} {
			w.Header()[name] = inner.Header()[name]
		}
	}
	response := s.Assistant(r.WithContext(r.Context()), body, charge, http.HandlerFunc(call), MayCall(r.key.Permissions))
	if !charged {
		charge()
	}
	if refused != nil {
		return refused
	}
	for name, values := range response.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(response.StatusCode)
	io.Copy(w, response.Body) // an error means that the client is gone
	return nil
}

// readMessage reads the body of a request of an assistant.
func readMessage(w http.ResponseWriter, r *request) ([]byte, error) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return nil, animalstore.Errorf(animalstore.MethodNotAllowed, "this method is not allowed here: use POST")
	}
	body, err := readBody(r)
	if err != nil {
		return nil, err
	}
	return body, checkMediaType(r)
}
