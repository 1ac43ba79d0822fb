package api_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"animalstore/internal/api"
)

// slowly hands out a body after a while.
type slowly struct {
	io.Reader
	wait time.Duration
}

func (s *slowly) Read(p []byte) (int, error) {
	time.Sleep(s.wait)
	s.wait = 0
	return s.Reader.Read(p)
}

// TestSlowBody: the time for the work does not begin before the body is there.
func TestSlowBody(t *testing.T) {
	sqliteOnly(t, "the connections of PostgreSQL do not fit in a bubble of synctest")
	s := start(t, func(with *setup) { with.echo = true }).inProcess()
	synctest.Test(t, func(t *testing.T) {
		body := &slowly{strings.NewReader(`{"name":"Rex","categoryId":7}`), api.HandlerTimeout + time.Second}
		req, err := http.NewRequestWithContext(t.Context(), "POST", s.url+"/v1/pets", body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+s.owner)
		req.Header.Set("Content-Type", "application/json")
		s.handler.ServeHTTP(&statusWriter{t: t, want: http.StatusCreated}, req)
	})
}

type statusWriter struct {
	t      *testing.T
	want   int
	header http.Header
}

func (w *statusWriter) Header() http.Header {
	if w.header == nil {
		w.header = http.Header{}
	}
	return w.header
}

func (w *statusWriter) Write(b []byte) (int, error) { return len(b), nil }

func (w *statusWriter) WriteHeader(status int) {
	if status != w.want {
		w.t.Errorf("got %d, want %d", status, w.want)
	}
}
