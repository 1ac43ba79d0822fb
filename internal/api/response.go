package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
)

// writeResource writes a resource or a list with its ETag. The error is for an
// If-Match that doesn't match.
func writeResource(w http.ResponseWriter, r *request, status int, v any) error {
	return newEntity(encode(v)).write(w, r, status)
}

// writeJSON writes v.
func writeJSON(w http.ResponseWriter, status int, v any) {
	body := encode(v)
	writeBody(w, status, body, strconv.Itoa(len(body)))
}

// encode returns the JSON of v, one of our types, which can always be encoded.
// Nothing is sent before, so that no response fails half-way.
func encode(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // the escapes are hard to read, and this isn't HTML
	if err := enc.Encode(v); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// writeBody writes a response. An error of the connection is ignored: there is
// nobody left to report it to.
func writeBody(w http.ResponseWriter, status int, body []byte, length string) {
	setField(w, "Content-Type", typeJSON)
	setField(w, "Content-Length", length)
	w.WriteHeader(status)
	w.Write(body)
}
