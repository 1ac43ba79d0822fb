package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"animalstore/internal/diagnose"

	"github.com/spf13/cobra"
)

// healthTimeout is shorter than what container engines and monitors allow a check,
// so that it fails with a message of its own.
const healthTimeout = 4 * time.Second

func healthcheckCommand() *cobra.Command {
	var address string
	cmd := &cobra.Command{
		Use:   "healthcheck",
		Short: "Check that a server is ready",
		Long: `Ask a server's /readyz whether it is ready, for container engines and monitors.
The exit code is 0 if it is, and otherwise 1. It takes at most 4 seconds and
needs no key.

Without --url it asks the server on this machine that the environment describes:
ANIMALSTORE_LISTEN has its address, and ANIMALSTORE_TLS_CERT or
ANIMALSTORE_ACME_DOMAIN mean HTTPS. On a loopback address any certificate is
accepted, because certificates are for public names.`,
		Example: `  animalstore healthcheck
  animalstore healthcheck --url https://pets.example`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if address == "" {
				address = localURL()
			}
			if err := checkHealth(cmd.Context(), address); err != nil {
				return err
			}
			if p := newPrinter(cmd); p.JSON {
				return p.PrintJSON(map[string]any{"url": address, "ready": true})
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "ready")
			return err
		},
	}
	cmd.Flags().StringVar(&address, "url", "", "`address` of the server (default: this machine's)")
	jsonFlag(cmd)
	return cmd
}

// localURL is where a server with this environment can be reached from its machine.
func localURL() string {
	scheme := "http"
	if os.Getenv(variable("tls-cert")) != "" || os.Getenv(variable("acme-domain")) != "" {
		scheme = "https"
	}
	host, port, err := net.SplitHostPort(os.Getenv(variable("listen")))
	if err != nil {
		return scheme + strings.TrimPrefix(defaultURL, "http")
	}
	if addr, err := netip.ParseAddr(host); host == "" || err == nil && addr.IsUnspecified() {
		host = "localhost"
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}

// checkHealth returns why the server at this address isn't ready, or nil.
func checkHealth(ctx context.Context, address string) error {
	base, err := url.Parse(address)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return usageError{fmt.Errorf("--url (or ANIMALSTORE_URL) must be an address such as %s, not %q", defaultURL, address)}
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	base.Path = strings.TrimSuffix(strings.TrimSuffix(base.Path, "/"), "/v1") + "/readyz"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base.String(), nil)
	if err != nil {
		return err
	}
	response, err := healthClient(base.Hostname()).Do(request)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("not ready: %s didn't respond within %s", base, healthTimeout)
	}
	if err != nil {
		return fmt.Errorf("not ready: %s cannot be reached (%s)", base, diagnose.RootCause(err))
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("not ready: %s responded with %s", base, response.Status)
	}
	return nil
}

// healthClient calls a server directly: a proxy or a redirect would show the health
// of something else.
func healthClient(host string) *http.Client {
	config := &tls.Config{}
	if addr, err := netip.ParseAddr(host); host == "localhost" || err == nil && addr.IsLoopback() {
		// Nobody else can be behind this address, and nothing secret is sent.
		config.InsecureSkipVerify = true
		// With --acme-domain, a server has certificates for no other name.
		config.ServerName, _, _ = strings.Cut(os.Getenv(variable("acme-domain")), ",")
	}
	return &http.Client{
		Transport:     &http.Transport{TLSClientConfig: config, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
