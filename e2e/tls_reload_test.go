package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// moveFile replaces a file by another.
func moveFile(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// trusts is a client that accepts only certificates of these roots, on a connection of
// its own for each request.
func trusts(roots *x509.CertPool) *http.Client {
	return &http.Client{
		Timeout:       time.Minute,
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// get returns the status, or 0 and the error.
func get(c *http.Client, url string) (int, error) {
	res, err := c.Get(url)
	if err != nil {
		return 0, err
	}
	res.Body.Close()
	return res.StatusCode, nil
}

// TestCertificateReload: a running server uses a new certificate within ten seconds,
// without a failed request, and keeps the old one if the new one is broken.
func TestCertificateReload(t *testing.T) {
	t.Parallel()
	certFile, keyFile, roots := selfSigned(t)
	s := start(t, withOps(), withArgs("--tls-cert", certFile, "--tls-key", keyFile))

	ended := make(chan struct{})
	var load sync.WaitGroup
	stopLoad := sync.OnceFunc(func() {
		close(ended)
		load.Wait()
	})
	defer stopLoad() // before the server is ended, if the test fails
	for range 2 {
		load.Go(func() {
			c := &http.Client{Timeout: time.Minute, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
			for {
				if status, err := get(c, s.url+"/livez"); status != 200 {
					t.Errorf("got %d, %v, want 200", status, err)
				}
				select {
				case <-ended:
					return
				case <-time.After(breather()):
				}
			}
		})
	}
	swaps := 2
	if soak {
		swaps = 100
	}
	for range swaps {
		newCert, newKey, newRoots := selfSigned(t)
		moveFile(t, newCert, certFile)
		moveFile(t, newKey, keyFile)
		eventually(t, 10*time.Second, "the server uses the new certificate", func() bool {
			status, _ := get(trusts(newRoots), s.url+"/livez")
			return status == 200
		})
		if _, err := get(trusts(roots), s.url+"/livez"); err == nil {
			t.Error("a client that knows the old certificate only accepts the new one")
		}
		roots = newRoots
	}
	if n := strings.Count(s.stderr.String(), "certificate replaced"); n < swaps {
		t.Errorf("%d replacements are in the log, want %d:\n%s", n, swaps, s.stderr)
	}

	good := mustRead(t, certFile)
	if err := os.WriteFile(certFile, good[:100], 0o600); err != nil {
		t.Fatal(err)
	}
	refused := regexp.MustCompile(`level=ERROR msg="the new certificate can't be used, so the server keeps the old one: fix the files[^"]*".* err=`)
	eventually(t, 10*time.Second, "the log says that the certificate is broken", func() bool { return refused.MatchString(s.stderr.String()) })
	if status, err := get(trusts(roots), s.url+"/livez"); status != 200 {
		t.Errorf("with a broken file: got %d, %v, want 200 with the old certificate", status, err)
	}
	stopLoad()
	s.stop()
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

var redirectAddress = regexp.MustCompile(`\bredirect=(http://\S+)`)

// redirectURL is where a server redirects plain HTTP.
func (s *server) redirectURL() string {
	s.t.Helper()
	m := redirectAddress.FindStringSubmatch(s.stderr.String())
	if m == nil {
		s.t.Fatalf("the log doesn't say where plain HTTP is redirected:\n%s", s.stderr)
	}
	return m[1]
}

// TestRedirectToHTTPS: following the redirect leads to the API.
func TestRedirectToHTTPS(t *testing.T) {
	t.Parallel()
	certFile, keyFile, roots := selfSigned(t)
	s := start(t, withArgs("--tls-cert", certFile, "--tls-key", keyFile, "--redirect-http", "127.0.0.1:0"))
	res, err := trusts(roots).Post(s.redirectURL()+"/v1/pets?a=b", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if got, want := res.Header.Get("Location"), s.url+"/v1/pets?a=b"; res.StatusCode != 308 || got != want {
		t.Errorf("got %d to %q, want 308 to %q", res.StatusCode, got, want)
	}
	req, _ := http.NewRequest("GET", s.redirectURL()+"/v1/pets", nil)
	req.Host = "evil.example"
	if res, err = trusts(roots).Do(req); err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != 421 || res.Header.Get("Location") != "" {
		t.Errorf("another host: got %d to %q, want 421", res.StatusCode, res.Header.Get("Location"))
	}
	s.stop()
}
