package api

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strconv"
	"sync"

	"animalstore/internal/pages"
	"animalstore/openapi"
)

// The OpenAPI document in its two forms. Compressing one takes a few milliseconds,
// so it's done once, for the first request.
var (
	yamlDocument = sync.OnceValue(func() *openAPIDocument { return newOpenAPIDocument("application/yaml", openapi.YAML) })
	jsonDocument = sync.OnceValue(func() *openAPIDocument { return newOpenAPIDocument(typeJSON, openapi.JSON) })
)

// openAPIDocument is the OpenAPI document, ready to be sent.
type openAPIDocument struct {
	contentType    string
	plain, gzipped entity
}

func newOpenAPIDocument(contentType string, content []byte) *openAPIDocument {
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		panic(err) // the level is valid
	}
	w.Write(content) // a bytes.Buffer never fails
	w.Close()
	return &openAPIDocument{contentType, newEntity(content), newEntity(packed.Bytes())}
}

func serveDocument(document func() *openAPIDocument) func(http.ResponseWriter, *request) error {
	return func(w http.ResponseWriter, r *request) error { return document().serve(w, r) }
}

// serve writes the document, or 304 if the client has it already.
func (d *openAPIDocument) serve(w http.ResponseWriter, r *request) error {
	h := w.Header()
	h.Add("Vary", "Accept-Encoding")
	form, coding := d.plain, ""
	if pages.AcceptsGzip(r.Request) {
		form, coding = d.gzipped, "gzip"
	}
	tag := form.tag
	if err := r.checkIfMatch(tag); err != nil {
		return err
	}
	h["ETag"] = []string{tag}
	h.Set("Cache-Control", "no-cache") // ask each time whether it has changed
	if r.alreadyHas(tag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	if coding != "" {
		h.Set("Content-Encoding", coding)
	}
	h.Set("Content-Type", d.contentType)
	h.Set("Content-Length", strconv.Itoa(len(form.body)))
	w.WriteHeader(http.StatusOK)
	w.Write(form.body)
	return nil
}
