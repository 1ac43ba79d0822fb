package e2e

import (
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestFastPathFlag: the flag and its variable leave plain requests to net/http. The
// goroutine of an open connection shows who serves it.
func TestFastPathFlag(t *testing.T) {
	certFile, keyFile, _ := selfSigned(t)
	for _, test := range []struct {
		name string
		with option
		fast bool
	}{
		{"default", withArgs(), true},
		{"flag", withArgs("--fast-path=false"), false},
		{"variable", withEnv("ANIMALSTORE_FAST_PATH=false"), false},
		{"default over TLS", withArgs("--tls-cert", certFile, "--tls-key", keyFile), true},
		{"flag over TLS", withArgs("--tls-cert", certFile, "--tls-key", keyFile, "--fast-path=false"), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, withOps(), test.with)
			client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
			defer client.CloseIdleConnections()
			res, err := client.Get(s.url + "/v1/pets")
			if err != nil {
				t.Fatal(err)
			}
			io.Copy(io.Discard, res.Body)
			res.Body.Close()
			if res.StatusCode != http.StatusUnauthorized {
				t.Errorf("got %d, want 401", res.StatusCode)
			}
			_, goroutines := s.ops("/debug/pprof/goroutine?debug=2")
			if got := strings.Contains(goroutines, "servePlain"); got != test.fast {
				t.Errorf("got a connection on the fast path: %t, want %t", got, test.fast)
			}
		})
	}
}
