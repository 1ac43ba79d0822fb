package server

import (
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"animalstore/internal/testenv"
)

// opsURL starts a server with an ops listener and returns the address in its log.
func opsURL(t *testing.T, listen string) string {
	t.Helper()
	cfg := localConfig(t)
	cfg.OpsListen = listen
	var log Log
	cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	s, err := New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	_, address, _ := strings.Cut(log.String(), "ops=http://")
	address, _, ok := strings.Cut(address, "/metrics")
	if !ok {
		t.Fatalf("got no address of the metrics in the log:\n%s", log.String())
	}
	return "http://" + address
}

// TestOpsHosts: metrics and profiles are served only under names that a web page can't
// take over.
func TestOpsHosts(t *testing.T) {
	machine, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	url := opsURL(t, "127.0.0.1:0")
	for _, host := range []string{"localhost", "localhost:8081", "LOCALHOST.", "127.0.0.1", "[::1]:8081", "192.0.2.1", machine} {
		if res, body := getAs(t, url+"/metrics", host); res.StatusCode != http.StatusOK {
			t.Errorf("Host %s: got %d %s, want it served", host, res.StatusCode, body)
		}
	}
	for _, host := range []string{"shop.example", "shop.example:8081", "localhost.shop.example", "127.0.0.1.shop.example", "x" + machine, "x.localhost"} {
		if res, body := getAs(t, url+"/metrics", host); res.StatusCode != http.StatusMisdirectedRequest {
			t.Errorf("Host %s: got %d %s, want 421", host, res.StatusCode, body)
		}
	}
}

// TestOpsHidesTheCommandLine: it may contain the database's password.
func TestOpsHidesTheCommandLine(t *testing.T) {
	url := opsURL(t, "127.0.0.1:0")
	if res, body := getAs(t, url+"/debug/pprof/cmdline", "localhost"); res.StatusCode != http.StatusNotFound || strings.Contains(body, os.Args[0]) {
		t.Errorf("got %d %s, want 404", res.StatusCode, body)
	}
	if res, body := getAs(t, url+"/debug/pprof/goroutine?debug=1", "localhost"); res.StatusCode != http.StatusOK {
		t.Errorf("a profile: got %d %s, want 200", res.StatusCode, body)
	}
}

// getAs sends a request with this Host and expects nosniff in any response.
func getAs(t *testing.T, url, host string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if got := res.Header["X-Content-Type-Options"]; len(got) != 1 || got[0] != "nosniff" {
		t.Errorf("%s of Host %s: got X-Content-Type-Options %q, want nosniff", url, host, got)
	}
	return res, string(body)
}

// TestErrorLog: a panic in a request that net/http serves is logged as an error;
// clients' mistakes aren't.
func TestErrorLog(t *testing.T) {
	var logged Log
	cfg := localConfig(t)
	cfg.Log = slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	useCertificate(t, &cfg, 1)
	cfg.Hooks.Middleware = func(http.Handler) http.Handler {
		return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a mistake") })
	}
	s := run(t, cfg)

	http1, http2 := new(http.Protocols), new(http.Protocols)
	http1.SetHTTP1(true)
	http2.SetHTTP2(true)
	for _, protocols := range []*http.Protocols{http1, http2} {
		transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, Protocols: protocols}
		client := http.Client{Transport: transport}
		if res, err := client.Get(s.URL()); err == nil {
			res.Body.Close()
			t.Errorf("%v: got %s, want no response", protocols, res.Status)
		}
		transport.CloseIdleConnections()
	}
	client, err := net.Dial("tcp", s.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	client.Write([]byte("not TLS\r\n\r\n"))

	for _, want := range []string{
		`level=ERROR msg="http: panic serving `,
		`level=ERROR msg="http2: panic serving `,
		`level=DEBUG msg="http: TLS handshake error `,
	} {
		testenv.Eventually(t, want+" is logged", func() bool { return strings.Contains(logged.String(), want) })
	}
	s.stop()
	if err := s.wait(t); err != nil {
		t.Error(err)
	}
}
