// Package inprocess lets a client of the API call it in the same process.
package inprocess

import (
	"bytes"
	"io"
	"net/http"
	"net/textproto"
	"time"
)

// Transport sends a client's requests to the API's handler. They have the client address of
// the request that they are made for.
type Transport struct {
	API http.Handler
	For *http.Request
	// To is the connection that a request reads its body from, or writes its response to, so
	// that it may change its deadlines. It is nil for all other requests.
	To http.ResponseWriter
}

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	in := t.Incoming(r)
	w := NewRecorder(t.To)
	t.API.ServeHTTP(w, in)
	in.Body.Close()
	return w.Response(r), nil
}

// Incoming returns a request as the API's handler receives it.
func (t *Transport) Incoming(r *http.Request) *http.Request {
	in := r.Clone(r.Context())
	in.RequestURI, in.RemoteAddr, in.Host = r.URL.RequestURI(), t.For.RemoteAddr, t.For.Host
	if hops := t.For.Header["X-Forwarded-For"]; hops != nil {
		in.Header["X-Forwarded-For"] = hops
	}
	if in.Body == nil {
		in.Body = http.NoBody
	}
	return in
}

// Recorder is a response in memory.
type Recorder struct {
	header  http.Header
	status  int
	written bool
	body    bytes.Buffer
	to      http.ResponseWriter // see Transport.To
}

// NewRecorder returns a Recorder. See [Transport] for to.
func NewRecorder(to http.ResponseWriter) *Recorder {
	return &Recorder{header: http.Header{}, status: http.StatusOK, to: to}
}

// Response is what was recorded, as if read from a connection.
func (w *Recorder) Response(r *http.Request) *http.Response {
	header := http.Header{}
	for name, values := range w.header {
		header[textproto.CanonicalMIMEHeaderKey(name)] = values
	}
	return &http.Response{
		Status: http.StatusText(w.status), StatusCode: w.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()), Request: r,
	}
}

// SetReadDeadline is for [http.ResponseController].
func (w *Recorder) SetReadDeadline(t time.Time) error {
	if w.to == nil {
		return http.ErrNotSupported
	}
	return http.NewResponseController(w.to).SetReadDeadline(t)
}

// SetWriteDeadline is for [http.ResponseController].
func (w *Recorder) SetWriteDeadline(t time.Time) error {
	if w.to == nil {
		return http.ErrNotSupported
	}
	return http.NewResponseController(w.to).SetWriteDeadline(t)
}

// Header implements [http.ResponseWriter].
func (w *Recorder) Header() http.Header { return w.header }

// WriteHeader implements [http.ResponseWriter].
func (w *Recorder) WriteHeader(status int) {
	if !w.written {
		w.status, w.written = status, true
	}
}

// Write implements [http.ResponseWriter].
func (w *Recorder) Write(b []byte) (int, error) {
	w.written = true
	return w.body.Write(b)
}
