package api

import (
	"net/http"
	"strconv"

	"animalstore"
)

// response records what was sent.
type response struct {
	http.ResponseWriter
	status int
	bytes  int
}

func (w *response) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *response) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	n, err := w.ResponseWriter.Write(b)
	w.bytes += n
	return n, err
}

// has reports whether setHeader has set the field, whose name is spelled as there.
func (w *response) has(name string) bool { return w.Header()[name] != nil }

// Unwrap lets http.ResponseController reach the connection.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// setHeader sets a header field and keeps the spelling of its name, which Header.Set
// would change: the interface spells X-RateLimit-Limit.
func setHeader(w http.ResponseWriter, name, value string) {
	w.Header()[name] = []string{value}
}

// writeResource writes a resource or a list with its ETag. The error is for an
// If-Match that doesn't match.
func writeResource(w http.ResponseWriter, r *request, status int, v any) error {
	return newEntity(encode(v)).write(w, r, status)
}

// setLocation names the resource that was created: the one with this id below path.
func setLocation(w http.ResponseWriter, path string, id int64) {
	setHeader(w, "Location", path+"/"+strconv.FormatInt(id, 10))
}

// writeJSON writes v. Its error is always nil, so that handlers can return it.
func writeJSON(w http.ResponseWriter, status int, v any) error {
	body := encode(v)
	writeBody(w, status, body, strconv.Itoa(len(body)))
	return nil
}

// encode returns the body for v, one of our types, which can always be encoded. All of it
// is encoded before anything is sent, so that no response fails half-way.
func encode(v any) []byte {
	body, err := animalstore.EncodeJSON(v)
	if err != nil {
		panic(err)
	}
	return append(body, '\n')
}

// writeBody writes a response. An error of the connection is ignored: there is
// nobody left to report it to.
func writeBody(w http.ResponseWriter, status int, body []byte, length string) {
	setHeader(w, "Content-Type", typeJSON)
	setHeader(w, "Content-Length", length)
	w.WriteHeader(status)
	w.Write(body)
}
