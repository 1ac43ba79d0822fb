package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"animalstore/internal/db/postgres/pgtest"
	"animalstore/internal/testenv"
)

// selfSigned creates a certificate for 127.0.0.1 and the files a server needs.
func selfSigned(t *testing.T) (certFile, keyFile string, roots *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "test"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, kind string, content []byte) string {
		return mustWrite(t, filepath.Join(dir, name), string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content})), 0o600)
	}
	roots = x509.NewCertPool()
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots.AddCert(cert)
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", keyDER), roots
}

// TestTLS_Slow: HTTPS works with both versions of HTTP, and plain HTTP redirects to it.
func TestTLS_Slow(t *testing.T) {
	t.Parallel()
	certFile, keyFile, roots := selfSigned(t)
	s := start(t, withArgs("--tls-cert", certFile, "--tls-key", keyFile, "--redirect-http", "127.0.0.1:0"))
	if !strings.HasPrefix(s.url, "https://") {
		t.Fatalf("the address is %s, want https", s.url)
	}
	for _, version := range []string{"HTTP/1.1", "HTTP/2.0"} {
		c := newClient(t, s, s.ownerKey())
		c.http.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: roots}
		c.http.Transport.(*http.Transport).ForceAttemptHTTP2 = version == "HTTP/2.0"
		wantStatus(t, c.do(t, "POST", "/v1/pets", `{"name":"Rex","categoryId":1}`), 201, "")
		resp, err := c.http.Get(s.url + "/livez")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.Proto != version {
			t.Errorf("got %s, want %s", resp.Proto, version)
		}
	}
	if _, err := newClient(t, s, "").try("GET", "/livez", ""); err == nil {
		t.Error("a client that does not know the certificate accepts it")
	}
	if status, _ := paste(t, s.printed(curlLine), "CURL_CA_BUNDLE="+certFile); status != "200" {
		t.Errorf("the printed curl line gives %s, want 200", status)
	}
	res, err := trusts(roots).Get(s.redirectURL() + "/v1/pets?a=b")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if got, want := res.Header.Get("Location"), s.url+"/v1/pets?a=b"; res.StatusCode != 308 || got != want {
		t.Errorf("got %d to %q, want 308 to %q", res.StatusCode, got, want)
	}
	s.stop() // idle connections of both kinds are still open
}

// trusts returns a client that accepts only certificates of these roots, with a
// separate connection for each request.
func trusts(roots *x509.CertPool) *http.Client {
	return &http.Client{
		Timeout:       testenv.Deadline,
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

func mustRead(t testing.TB, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// mustWrite creates a file, and the directory for it, and returns its path.
func mustWrite(t *testing.T, path, text string, mode os.FileMode) string {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), mode)); err != nil {
		t.Fatal(err)
	}
	return path
}

var redirectAddress = regexp.MustCompile(`\bredirect=(http://\S+)`)

// redirectURL is the address where a server redirects plain HTTP.
func (s *server) redirectURL() string {
	s.t.Helper()
	m := redirectAddress.FindStringSubmatch(s.stderr.String())
	if m == nil {
		s.t.Fatalf("the log doesn't say where plain HTTP is redirected:\n%s", s.stderr)
	}
	return m[1]
}

// forDomain returns a client that connects to a server's address for any domain,
// regardless of the domain's real address.
func forDomain(addr string, roots *x509.CertPool) *http.Client {
	return &http.Client{Timeout: testenv.Deadline, Transport: &http.Transport{
		DialTLSContext: func(ctx context.Context, _, host string) (net.Conn, error) {
			name, _, _ := net.SplitHostPort(host)
			dialer := tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: name}}
			return dialer.DialContext(ctx, "tcp", addr)
		},
		DisableKeepAlives: true,
	}}
}

func (s *server) address() string { return strings.TrimPrefix(s.url, "https://") }

// trusting makes a server trust another one's certificate.
func trusting(t *testing.T, other *httptest.Server) option {
	t.Helper()
	file := filepath.Join(t.TempDir(), "trusted.pem")
	mustWrite(t, file, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: other.Certificate().Raw})), 0o600)
	return withEnv("SSL_CERT_FILE=" + file)
}

// TestACMEDirectoryDown_Slow: a server starts without the authority, logs that, and refuses
// handshakes instead of requesting certificates for any domain that a client names.
func TestACMEDirectoryDown_Slow(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	authority := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		http.NotFound(w, r)
	}))
	defer authority.Close()
	s := start(t, trusting(t, authority), withArgs("--acme-domain", "shop.example,www.shop.example", "--acme-directory", authority.URL+"/dir", "--redirect-http", "127.0.0.1:0"))
	testenv.Eventually(t, "the log says that neither domain has a certificate", func() bool {
		return strings.Count(s.stderr.String(), " retry_in=") == 2
	})
	before := asked.Load()
	if before == 0 {
		t.Error("the authority wasn't asked at the start")
	}
	for _, domain := range []string{"shop.example", "evil.example"} {
		// autocert would obtain another certificate for a client that supports only
		// RSA.
		old := &tls.Config{ServerName: domain, MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}}
		if conn, err := tls.Dial("tcp", s.address(), old); err == nil {
			conn.Close()
			t.Errorf("%s: a handshake with RSA succeeds without a certificate", domain)
		}
		if status, err := get(forDomain(s.address(), nil), "https://"+domain+"/livez"); err == nil {
			t.Errorf("%s: got %d, want no handshake without a certificate", domain, status)
		}
	}
	if n := asked.Load() - before; n != 0 {
		t.Errorf("the handshakes made the server ask the authority %d times, want never", n)
	}
	req, _ := http.NewRequest("GET", s.redirectURL()+"/docs", nil)
	req.Host = "shop.example"
	res, err := trusts(nil).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if got := res.Header.Get("Location"); res.StatusCode != 308 || got != "https://shop.example/docs" {
		t.Errorf("got %d to %q, want a redirect to https://shop.example/docs", res.StatusCode, got)
	}
	s.stop()
}

// pebble is an ACME server for tests.
type pebble struct {
	directory string
	https     string       // where it checks TLS challenges
	http      string       // where it checks HTTP challenges
	trust     string       // file with the certificate of its API
	client    *http.Client // for its API
	manage    string
}

// startPebble starts the real program.
func startPebble(t *testing.T, validity time.Duration) *pebble {
	t.Helper()
	const programs = "github.com/letsencrypt/pebble/v2/cmd/"
	path, dns := buildTool(t, programs+"pebble"), buildTool(t, programs+"pebble-challtestsrv")
	certFile, keyFile, roots := selfSigned(t)
	p := &pebble{https: pgtest.FreeAddress(t), http: pgtest.FreeAddress(t), trust: certFile, client: trusts(roots)}
	api, manage := pgtest.FreeAddress(t), pgtest.FreeAddress(t)
	p.directory, p.manage = "https://"+api+"/dir", "https://"+manage
	config, err := json.Marshal(map[string]any{"pebble": map[string]any{
		"listenAddress": api, "managementListenAddress": manage,
		"certificate": certFile, "privateKey": keyFile,
		"httpPort": portOf(p.http), "tlsPort": portOf(p.https),
		"profiles": map[string]any{"default": map[string]any{"description": "test", "validityPeriod": int(validity.Seconds())}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	file := mustWrite(t, filepath.Join(t.TempDir(), "config.json"), string(config), 0o600)
	resolver := pgtest.FreeAddress(t) // knows every domain as 127.0.0.1
	startProgram(t, dns, "-dnsserver", resolver, "-defaultIPv6", "", "-doh", "", "-http01", "",
		"-https01", "", "-tlsalpn01", "", "-management", pgtest.FreeAddress(t))
	program := startIn(t, "", []string{"PEBBLE_VA_NOSLEEP=1", "PEBBLE_WFE_NONCEREJECT=0"}, path, "-config", file, "-dnsserver", resolver)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("pebble:\n%s", program.output())
		}
	})
	testenv.Eventually(t, "pebble serves", func() bool {
		status, _ := get(p.client, p.directory)
		return status == 200
	})
	return p
}

func (p *pebble) roots(t *testing.T) *x509.CertPool {
	t.Helper()
	res, err := p.client.Get(p.manage + "/roots/0")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		t.Fatalf("pebble's root is %q, %v", text, err)
	}
	return pool
}

func portOf(addr string) (port int) {
	_, text, _ := net.SplitHostPort(addr)
	fmt.Sscan(text, &port)
	return port
}

// TestACME obtains certificates from a real authority, and keeps them across a restart
// without the authority.
func TestACME(t *testing.T) {
	testenv.OnlySoak(t, "it builds a real authority")
	t.Parallel()
	p := startPebble(t, time.Hour)
	tryACME(t, p, func(func() string) {}, onAddress(p.https))
}

// TestACMERenewal does the same with the other challenge, and renews a certificate.
func TestACMERenewal(t *testing.T) {
	testenv.OnlySoak(t, "a certificate is valid for two minutes")
	t.Parallel()
	p := startPebble(t, 2*time.Minute)
	tryACME(t, p, func(serial func() string) {
		first := serial()
		testenv.Eventually(t, "the certificate is renewed", func() bool { return serial() != first })
	}, withArgs("--redirect-http", p.http))
}

func tryACME(t *testing.T, p *pebble, while func(serial func() string), opts ...option) {
	t.Helper()
	opts = append(opts, onDatabase(newDatabase(t)), withEnv("SSL_CERT_FILE="+p.trust),
		withArgs("--acme-domain", "shop.example", "--acme-domain", "www.shop.example", "--acme-directory", p.directory, "--acme-email", "operator@shop.example"))
	s := start(t, opts...)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(s.output())
		}
	})
	roots := p.roots(t)
	serial := func(domain string) string {
		conn, err := tls.Dial("tcp", s.address(), &tls.Config{RootCAs: roots, ServerName: domain})
		if err != nil {
			return ""
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	for _, domain := range []string{"shop.example", "www.shop.example"} {
		testenv.Eventually(t, "the server has a certificate for "+domain, func() bool { return serial(domain) != "" })
	}
	if serial("evil.example") != "" {
		t.Error("a domain that isn't configured gets a certificate")
	}
	while(func() string { return serial("shop.example") })
	s.stop()
	s = start(t, append(opts, withArgs("--acme-directory", "https://127.0.0.1:1/dir"))...)
	if serial("shop.example") == "" {
		t.Errorf("a restarted server has no certificate at its first handshake:\n%s", s.stderr)
	}
	s.stop()
}
