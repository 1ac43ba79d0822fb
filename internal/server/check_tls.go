package server

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
)

// CheckTLS refuses settings for HTTPS that contradict each other or can't work. acme may
// be the zero value. Errors name the flags of serve.
func CheckTLS(cfg Config, acme ACME) error {
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
		if err := CheckListenAddress("--redirect-http", cfg.RedirectListen); err != nil {
			return err
		}
	}
	if u, err := url.Parse(acme.Directory); acme.Directory != "" && (err != nil || u.Scheme != "https" || u.Host == "") {
		return fmt.Errorf("--acme-directory must be a URL like %s, not %q", DefaultACMEDirectory, acme.Directory)
	}
	for _, domain := range acme.Domains {
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
