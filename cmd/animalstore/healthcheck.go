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

	"animalstore/internal/cli"

	"github.com/spf13/cobra"
)

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
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if address == "" {
				secure := os.Getenv(cli.Variable("tls-cert")) != "" || os.Getenv(cli.Variable("acme-domain")) != ""
				address = localURL(os.Getenv(cli.Variable("listen")), secure)
			}
			base, err := url.Parse(address)
			if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
				return cli.Usagef("--url (or ANIMALSTORE_URL) must be an address such as %s, not %q", defaultURL, address)
			}
			domain, _, _ := strings.Cut(os.Getenv(cli.Variable("acme-domain")), ",")
			if err := checkReady(cmd.Context(), base, domain); err != nil {
				return err
			}
			if p := newPrinter(cmd); p.JSON {
				return p.PrintJSON(map[string]any{"url": address, "ready": true})
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), "ready")
			return err
		},
	}
	cmd.Flags().StringVar(&address, "url", "", "`address` of the server (default: this machine's)")
	jsonFlag(cmd)
	return cmd
}

// readyTimeout is shorter than what container engines and monitors allow a check, so
// that it fails with our message.
const readyTimeout = 4 * time.Second

// checkReady returns why the server at this address isn't ready, or nil if it is. On a
// loopback address it accepts any certificate and asks for the one of certificateName,
// if that isn't empty.
func checkReady(ctx context.Context, address *url.URL, certificateName string) error {
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
		return fmt.Errorf("not ready: %s cannot be reached (%s)", &base, rootCause(err))
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

// localURL is where a server can be reached from its own machine. listen is what it
// listens on, "" for the default.
func localURL(listen string, secure bool) string {
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
