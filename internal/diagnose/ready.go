package diagnose

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// readyTimeout is shorter than what container engines and monitors allow a check, so
// that it fails with a message of its own.
const readyTimeout = 4 * time.Second

// Ready returns why the server at this address isn't ready, or nil if it is. On a
// loopback address it accepts any certificate and asks for the one of certificateName,
// if that isn't empty.
func Ready(ctx context.Context, address *url.URL, certificateName string) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	base := *address
	base.Path = strings.TrimSuffix(strings.TrimSuffix(base.Path, "/"), "/v1") + "/readyz"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base.String(), nil)
	if err != nil {
		return err
	}
	response, err := readyClient(base.Hostname(), certificateName).Do(request)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("not ready: %s didn't respond within %s", &base, readyTimeout)
	}
	if err != nil {
		return fmt.Errorf("not ready: %s cannot be reached (%s)", &base, RootCause(err))
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("not ready: %s responded with %s", &base, response.Status)
	}
	return nil
}

// readyClient calls a server directly: a proxy or a redirect would show the health of
// something else.
func readyClient(host, certificateName string) *http.Client {
	config := &tls.Config{}
	if addr, err := netip.ParseAddr(host); host == "localhost" || err == nil && addr.IsLoopback() {
		// Nobody else can be behind this address, and nothing secret is sent.
		config.InsecureSkipVerify = true
		// A server that obtains its certificates has none for any other name.
		config.ServerName = certificateName
	}
	return &http.Client{
		Transport:     &http.Transport{TLSClientConfig: config, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// LocalURL is where a server can be reached from its own machine. listen is what it
// listens on, "" for the default.
func LocalURL(listen string, secure bool) string {
	scheme := "http"
	if secure {
		scheme = "https"
	}
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		host, port = "127.0.0.1", "8080"
	}
	if addr, err := netip.ParseAddr(host); host == "" || err == nil && addr.IsUnspecified() {
		host = "localhost"
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}
