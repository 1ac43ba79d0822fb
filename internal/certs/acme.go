package certs

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"
)

// DefaultACMEDirectory is the directory of Let's Encrypt.
const DefaultACMEDirectory = autocert.DefaultACMEDirectory

// ACME says which certificates to obtain from an authority and renew, one for each
// domain. Only one server may do so for a domain: with several, the authority's check may
// reach the wrong one.
type ACME struct {
	Domains   []string
	Cache     string // directory of the certificates and their keys, which only its owner may read
	Directory string // URL of the authority; "" is Let's Encrypt
	Email     string // where the authority reports problems; may be ""
}

const (
	// autocert remembers a failure for a minute, so the first retry comes after that.
	// Authorities allow only a few failures an hour.
	acmeRetryFirst = 65 * time.Second
	acmeRetryLast  = time.Hour
	// acmeCheckEvery is how often to check whether autocert has renewed a certificate.
	acmeCheckEvery = time.Minute
	// acmeOverdue is the fraction of a certificate's lifetime after which the log
	// reports that it hasn't been renewed. autocert starts trying after two thirds.
	acmeOverdue = 0.75
)

// acmeCertificates are certificates from an authority.
//
// Only Run obtains them, never a handshake: otherwise any client could use up the
// authority's rate limits.
type acmeCertificates struct {
	domains []string
	manager *autocert.Manager
	log     *slog.Logger

	mu    sync.Mutex
	certs map[string]*tls.Certificate // by domain; only those obtained so far
}

// FromAuthority returns certificates that Run obtains, except for valid ones already in
// the cache.
func FromAuthority(cfg ACME, version string, log *slog.Logger) (Certificates, error) {
	if err := prepareCache(cfg.Cache); err != nil {
		return nil, err
	}
	a := &acmeCertificates{log: log, certs: map[string]*tls.Certificate{}}
	for _, domain := range cfg.Domains {
		a.domains = append(a.domains, strings.ToLower(domain))
	}
	a.manager = &autocert.Manager{
		Prompt: autocert.AcceptTOS,
		Cache:  autocert.DirCache(cfg.Cache),
		HostPolicy: func(_ context.Context, host string) error {
			if name, _ := splitHost(host); !a.Covers(name) {
				return fmt.Errorf("no certificate for %q: it isn't among the domains of this server", host)
			}
			return nil
		},
		Client: &acme.Client{DirectoryURL: cmp.Or(cfg.Directory, DefaultACMEDirectory), UserAgent: "animalstore/" + version},
		Email:  cfg.Email,
	}
	for _, domain := range a.domains {
		a.useCached(domain)
	}
	return a, nil
}

// useCached uses the certificate in the cache if it is valid, so that a server has it
// before its first client connects.
func (a *acmeCertificates) useCached(domain string) {
	text, err := a.manager.Cache.Get(context.Background(), domain)
	if err != nil {
		return
	}
	cached, err := tls.X509KeyPair(text, text)
	if err != nil || time.Now().After(cached.Leaf.NotAfter) {
		return
	}
	if cert, err := a.fetch(domain); err == nil { // from the cache
		a.use(domain, cert)
	}
}

// prepareCache creates the directory and refuses one that others can read.
func prepareCache(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s has mode %04o, but holds private keys: run chmod 700 on it", dir, info.Mode().Perm())
	}
	return nil
}

func (a *acmeCertificates) Config() *tls.Config {
	config := a.manager.TLSConfig()
	config.GetCertificate = a.forHandshake
	return harden(config)
}

// forHandshake returns the certificate for a client, or the authority's proof if this is
// its check. A client that doesn't name a host, such as a health check by address, gets
// the first certificate.
func (a *acmeCertificates) forHandshake(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if slices.Equal(hello.SupportedProtos, []string{acme.ALPNProto}) {
		return a.manager.GetCertificate(hello)
	}
	domain := strings.ToLower(strings.TrimSuffix(hello.ServerName, "."))
	if domain == "" {
		domain = a.domains[0]
	}
	if !a.Covers(domain) {
		return nil, fmt.Errorf("%q isn't among the domains of this server", hello.ServerName)
	}
	if cert := a.obtained(domain); cert == nil {
		return nil, fmt.Errorf("the certificate of %s hasn't been obtained yet", domain)
	}
	return a.fetch(domain)
}

// fetch returns the certificate of a domain from memory, the cache or else the authority.
func (a *acmeCertificates) fetch(domain string) (*tls.Certificate, error) {
	// Every client of the last ten years supports ECDSA. Without it in the hello,
	// autocert would obtain a second certificate.
	return a.manager.GetCertificate(&tls.ClientHelloInfo{
		ServerName:   domain,
		CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256},
	})
}

func (a *acmeCertificates) obtained(domain string) *tls.Certificate {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.certs[domain]
}

func (a *acmeCertificates) Covers(host string) bool { return slices.Contains(a.domains, host) }

func (a *acmeCertificates) Expiries() map[string]time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	times := map[string]time.Time{}
	for domain, cert := range a.certs {
		times[domain] = cert.Leaf.NotAfter
	}
	return times
}

func (a *acmeCertificates) Run(ctx context.Context) {
	var wg sync.WaitGroup
	for _, domain := range a.domains {
		wg.Go(func() { a.keepCurrent(ctx, domain) })
	}
	wg.Wait()
}

// keepCurrent obtains a domain's certificate and reports its renewals, which autocert
// performs.
func (a *acmeCertificates) keepCurrent(ctx context.Context, domain string) {
	if !a.obtain(ctx, domain) {
		return
	}
	warned := time.Time{}
	for pause(ctx, acmeCheckEvery) {
		cert, err := a.fetch(domain)
		if err != nil {
			continue // rare: autocert has the certificate in memory
		}
		a.use(domain, cert)
		begin, end := cert.Leaf.NotBefore, cert.Leaf.NotAfter
		overdue := begin.Add(time.Duration(acmeOverdue * float64(end.Sub(begin))))
		if now := time.Now(); now.After(overdue) && now.Sub(warned) > 24*time.Hour {
			warned = now
			a.log.Error("the certificate hasn't been renewed yet: check that this server can reach the ACME directory, and that the domain leads to this server",
				"domain", domain, "expires", end)
		}
	}
}

// obtain tries until it has the certificate, or the context ends.
func (a *acmeCertificates) obtain(ctx context.Context, domain string) bool {
	for retry := acmeRetryFirst; ; retry = min(2*retry, acmeRetryLast) {
		// Closing the server must not wait for the authority.
		type result struct {
			cert *tls.Certificate
			err  error
		}
		got := make(chan result, 1)
		go func() {
			cert, err := a.fetch(domain)
			got <- result{cert, err}
		}()
		select {
		case <-ctx.Done():
			return false
		case r := <-got:
			if r.err == nil {
				a.use(domain, r.cert)
				return true
			}
			a.log.Error("no certificate for the domain, so its clients can't connect: check that this server can reach the ACME directory, and that the domain leads to this server",
				"domain", domain, "err", r.err, "retry_in", retry)
		}
		if !pause(ctx, retry) {
			return false
		}
	}
}

// use makes handshakes use this certificate, and logs it if it is new.
func (a *acmeCertificates) use(domain string, cert *tls.Certificate) {
	a.mu.Lock()
	old := a.certs[domain]
	a.certs[domain] = cert
	a.mu.Unlock()
	switch {
	case old == nil:
		a.log.Info("certificate obtained", "domain", domain, "expires", cert.Leaf.NotAfter)
	case !old.Leaf.Equal(cert.Leaf):
		a.log.Info("certificate renewed", "domain", domain, "expires", cert.Leaf.NotAfter)
	}
}

// pause waits and returns true, or returns false when the context ends.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// CheckDirectory rejects a directory that can't be the URL of an authority.
func CheckDirectory(directory string) error {
	if u, err := url.Parse(directory); err != nil || u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("must be a URL like %s, not %q", DefaultACMEDirectory, directory)
	}
	return nil
}

// CheckDomain rejects a domain that no authority would issue a certificate for, given
// the challenges this server can answer.
func CheckDomain(domain string) error {
	_, err := netip.ParseAddr(domain)
	if err == nil || !strings.Contains(domain, ".") || strings.Trim(domain, ".") != domain || strings.ContainsAny(domain, "*:/ _") {
		return fmt.Errorf("%q is not a full domain name: write it like shop.example", domain)
	}
	for _, c := range domain {
		if c > '~' {
			return fmt.Errorf("write %q in its ASCII form, which begins with xn--", domain)
		}
	}
	return nil
}
