package main

import (
	"errors"
	"fmt"
	"strings"

	"animalstore/internal/certs"
	"animalstore/internal/cli"
	"animalstore/internal/server"

	"github.com/spf13/cobra"
)

// tlsFlags adds the flags for HTTPS.
func tlsFlags(cmd *cobra.Command, f *serveFlags) {
	flags := cmd.Flags()
	flags.StringVar(&f.CertFile, "tls-cert", "", "file with the certificate chain, to serve HTTPS; read again when it changes")
	flags.StringVar(&f.KeyFile, "tls-key", "", "file with the private key of the certificate")
	flags.StringSliceVar(&f.certificates.Domains, "acme-domain", nil, "domains to obtain certificates for, from Let's Encrypt or --acme-directory; accepts the authority's terms")
	flags.StringVar(&f.certificates.Cache, "acme-cache", "", "directory for these certificates and their keys (default the database's file with .acme at the end)")
	flags.StringVar(&f.certificates.Directory, "acme-directory", "", "URL of the authority that issues them (default that of Let's Encrypt)")
	flags.StringVar(&f.certificates.Email, "acme-email", "", "where the authority may report problems")
	flags.StringVar(&f.RedirectListen, "redirect-http", "", "address and port, such as :80, that redirects plain HTTP to HTTPS and answers ACME's HTTP challenges")
	cli.CompleteFlag(cmd, "tls-cert", cli.CompleteFiles)
	cli.CompleteFlag(cmd, "tls-key", cli.CompleteFiles)
}

// checkTLS refuses settings for HTTPS that contradict each other or can't work. acme may
// be the zero value.
func checkTLS(cfg server.Config, acme certs.ACME) error {
	issued := len(acme.Domains) > 0
	switch {
	case (cfg.CertFile == "") != (cfg.KeyFile == ""):
		return errors.New("--tls-cert and --tls-key go together: give both or neither")
	case issued && cfg.CertFile != "":
		return errors.New("--acme-domain and --tls-cert exclude each other: the server obtains its certificates or you supply one")
	case !issued && (acme.Cache != "" || acme.Email != "" || acme.Directory != ""):
		return errors.New("--acme-cache, --acme-directory and --acme-email need --acme-domain")
	case issued && acme.Cache == "" && !strings.HasPrefix(cfg.Database, "sqlite:"):
		return errors.New("--acme-domain needs --acme-cache, a directory for the certificates, because the database isn't a file that they could be next to")
	case cfg.RedirectListen != "" && !issued && cfg.CertFile == "":
		return errors.New("--redirect-http needs a certificate: give --tls-cert and --tls-key, or --acme-domain")
	}
	if cfg.RedirectListen != "" {
		if err := checkListen("--redirect-http", cfg.RedirectListen); err != nil {
			return err
		}
	}
	if acme.Directory != "" {
		if err := certs.CheckDirectory(acme.Directory); err != nil {
			return fmt.Errorf("--acme-directory %w", err)
		}
	}
	for _, domain := range acme.Domains {
		if err := certs.CheckDomain(domain); err != nil {
			return named("--acme-domain", err)
		}
	}
	return nil
}
