package main

import (
	"fmt"
	"net/url"
	"os"
	"strings"

	"animalstore/internal/diagnose"

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
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if address == "" {
				secure := os.Getenv(variable("tls-cert")) != "" || os.Getenv(variable("acme-domain")) != ""
				address = diagnose.LocalURL(os.Getenv(variable("listen")), secure)
			}
			base, err := url.Parse(address)
			if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
				return usagef("--url (or ANIMALSTORE_URL) must be an address such as %s, not %q", defaultURL, address)
			}
			domain, _, _ := strings.Cut(os.Getenv(variable("acme-domain")), ",")
			if err := diagnose.Ready(cmd.Context(), base, domain); err != nil {
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
