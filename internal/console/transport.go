package console

import (
	"bytes"
	"io"
	"net/http"
	"net/textproto"
	"time"

	"animalstore/client"
)

// transport sends requests of the client to the API in this process. They come from the
// address of the browser, and are those of the key that signed in.
type transport struct {
	server  Server
	browser *http.Request
	secret  *[32]byte // nil: the request has its own credential
	// to is the connection that a request reads its body from, or writes its response to, so
	// that it may change its deadlines. It is nil for all other requests.
	to http.ResponseWriter
}

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	in := t.incoming(r)
	w := &recorder{header: http.Header{}, status: http.StatusOK, to: t.to}
	t.server.ServeAPI(w, in, t.secret)
	in.Body.Close()
	return w.response(r), nil
}

// incoming is a request as the API's handler gets it.
func (t *transport) incoming(r *http.Request) *http.Request {
	in := r.Clone(r.Context())
	in.RequestURI, in.RemoteAddr, in.Host = r.URL.RequestURI(), t.browser.RemoteAddr, t.browser.Host
	if hops := t.browser.Header["X-Forwarded-For"]; hops != nil {
		in.Header["X-Forwarded-For"] = hops
	}
	if t.secret != nil {
		in.Header.Del("Authorization")
	}
	if in.Body == nil {
		in.Body = http.NoBody
	}
	return in
}

// recorder is a response in memory.
type recorder struct {
	header  http.Header
	status  int
	written bool
	body    bytes.Buffer
	to      http.ResponseWriter // see transport
}

// response is what was recorded, as if read from a connection.
func (w *recorder) response(r *http.Request) *http.Response {
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
func (w *recorder) SetReadDeadline(t time.Time) error {
	if w.to == nil {
		return http.ErrNotSupported
	}
	return http.NewResponseController(w.to).SetReadDeadline(t)
}

// SetWriteDeadline is for [http.ResponseController].
func (w *recorder) SetWriteDeadline(t time.Time) error {
	if w.to == nil {
		return http.ErrNotSupported
	}
	return http.NewResponseController(w.to).SetWriteDeadline(t)
}

func (w *recorder) Header() http.Header { return w.header }

func (w *recorder) WriteHeader(status int) {
	if !w.written {
		w.status, w.written = status, true
	}
}

func (w *recorder) Write(b []byte) (int, error) {
	w.written = true
	return w.body.Write(b)
}

// newClient returns a client of the API that never waits and never retries: that is up to
// the user.
func (c *Console) newClient(r *http.Request, secret [32]byte) *client.Client {
	api, err := client.New("http://console", "the-session-has-it",
		client.WithHTTPClient(&http.Client{Transport: &transport{server: c.Server, browser: r, secret: &secret}}),
		client.WithMaxAttempts(1), client.WithMaxWait(0), client.WithUserAgent("animalstore-console"))
	if err != nil {
		panic(err) // all of it is fixed
	}
	return api
}
