package main

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"animalstore/internal/server"

	"github.com/spf13/cobra"
)

// tlsFlags adds the flags for HTTPS.
func tlsFlags(cmd *cobra.Command, f *serveFlags) {
	flags := cmd.Flags()
	flags.StringVar(&f.CertFile, "tls-cert", "", "file with the certificate chain, to serve HTTPS; read again when it changes")
	flags.StringVar(&f.KeyFile, "tls-key", "", "file with the private key of the certificate")
	flags.StringSliceVar(&f.acme.Domains, "acme-domain", nil, "domains to obtain certificates for, from Let's Encrypt or --acme-directory; accepts the authority's terms")
	flags.StringVar(&f.acme.Cache, "acme-cache", "", "directory for these certificates and their keys (default the database's file with .acme at the end)")
	flags.StringVar(&f.acme.Directory, "acme-directory", "", "URL of the authority that issues them (default that of Let's Encrypt)")
	flags.StringVar(&f.acme.Email, "acme-email", "", "where the authority may report problems")
	flags.StringVar(&f.RedirectListen, "redirect-http", "", "address and port, such as :80, that redirects plain HTTP to HTTPS and answers ACME's HTTP challenges")
	completeFlag(cmd, "tls-cert", completeFiles)
	completeFlag(cmd, "tls-key", completeFiles)
}

// checkTLS refuses flags for HTTPS that contradict each other or can't work.
func (f serveFlags) checkTLS() error {
	acme := len(f.acme.Domains) > 0
	switch {
	case (f.CertFile == "") != (f.KeyFile == ""):
		return errors.New("--tls-cert and --tls-key go together: give both or neither")
	case acme && f.CertFile != "":
		return errors.New("--acme-domain and --tls-cert exclude each other: the server obtains its certificates or you supply one")
	case !acme && (f.acme.Cache != "" || f.acme.Email != "" || f.acme.Directory != ""):
		return errors.New("--acme-cache, --acme-directory and --acme-email need --acme-domain")
	case acme && f.acme.Cache == "" && !strings.HasPrefix(f.Database, "sqlite:"):
		return errors.New("--acme-domain needs --acme-cache, a directory for the certificates, because the database isn't a file that they could be next to")
	case f.RedirectListen != "" && !acme && f.CertFile == "":
		return errors.New("--redirect-http needs a certificate: give --tls-cert and --tls-key, or --acme-domain")
	}
	if f.RedirectListen != "" {
		if err := server.CheckListenAddress("--redirect-http", f.RedirectListen); err != nil {
			return err
		}
	}
	if u, err := url.Parse(f.acme.Directory); f.acme.Directory != "" && (err != nil || u.Scheme != "https" || u.Host == "") {
		return fmt.Errorf("--acme-directory must be a URL like %s, not %q", server.DefaultACMEDirectory, f.acme.Directory)
	}
	for _, domain := range f.acme.Domains {
		if err := checkDomain(domain); err != nil {
			return err
		}
	}
	return nil
}

// checkDomain refuses what no authority issues a certificate for by the challenges that
// a server can answer.
func checkDomain(domain string) error {
	_, err := netip.ParseAddr(domain)
	if err == nil || !strings.Contains(domain, ".") || strings.Trim(domain, ".") != domain || strings.ContainsAny(domain, "*:/ _") {
		return fmt.Errorf("--acme-domain: %q is not a full domain name: write it like shop.example", domain)
	}
	for _, c := range domain {
		if c > '~' {
			return fmt.Errorf("--acme-domain: write %q in its ASCII form, which begins with xn--", domain)
		}
	}
	return nil
}

func explainCertificateError(err *server.CertificateError) error {
	if err.ACME {
		return fmt.Errorf("--acme-cache: %w", err.Err)
	}
	return fmt.Errorf("load the certificate of --tls-cert and --tls-key: %w", err.Err)
}
