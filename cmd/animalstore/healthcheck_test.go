package main

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"animalstore/internal/testenv"
)

// TestReady: only 200 from the server itself is ready, regardless of its certificate.
func TestReady(t *testing.T) {
	status := http.StatusOK
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/shop/readyz" {
			status = http.StatusNotFound
		}
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
	})
	plain, secure := httptest.NewServer(handler), httptest.NewTLSServer(handler)
	defer plain.Close()
	defer secure.Close()
	for _, test := range []struct {
		url    string
		status int
		ready  bool
	}{
		{plain.URL + "/shop", 200, true},
		{plain.URL + "/shop/v1", 200, true},
		{plain.URL + "/shop/v1/", 200, true},
		{secure.URL + "/shop", 200, true},
		{plain.URL + "/shop", 503, false},
		{plain.URL + "/shop", 307, false},
		{testenv.RefusingAddress(t) + "/shop", 200, false},
	} {
		status = test.status
		address, err := url.Parse(test.url)
		if err != nil {
			t.Fatal(err)
		}
		err = checkReady(t.Context(), address, "shop.example")
		if (err == nil) != test.ready {
			t.Errorf("%s with status %d: got %v, want ready: %t", test.url, test.status, err, test.ready)
		}
	}
}

func TestLocalURL(t *testing.T) {
	for listen, want := range map[string]string{
		"":               "http://127.0.0.1:8080",
		":9000":          "http://localhost:9000",
		"0.0.0.0:9000":   "http://localhost:9000",
		"[::]:9000":      "http://localhost:9000",
		"192.0.2.7:9000": "http://192.0.2.7:9000",
	} {
		if got := localURL(listen, false); got != want {
			t.Errorf("%q: got %s, want %s", listen, got, want)
		}
		if got, want := localURL(listen, true), strings.Replace(want, "http:", "https:", 1); got != want {
			t.Errorf("%q with HTTPS: got %s, want %s", listen, got, want)
		}
	}
}
