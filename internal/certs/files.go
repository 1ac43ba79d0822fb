package certs

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"
)

// files are a certificate and its key in two files. Both are read every second and used
// as soon as they match. So it doesn't matter which is replaced first or how: in place,
// by renaming, or through a symbolic link to another directory. Reading them is cheap
// and, unlike notifications or modification times, can't miss a change.
type files struct {
	certFile, keyFile string
	log               *slog.Logger
	current           atomic.Pointer[tls.Certificate]

	// Only Run uses these.
	loaded   contents // the contents behind current
	unusable contents // found since, and how often
	checks   int
}

// contents are the contents of both files, or the reason why they couldn't be read.
type contents struct{ cert, key, err string }

// Files returns the certificate in two files, which Run reads again every second. It fails
// if there is no usable certificate. An expired one is usable: most clients refuse it, but
// an operator can still connect to replace it.
func Files(certFile, keyFile string, log *slog.Logger) (Certificates, error) {
	f := &files{certFile: certFile, keyFile: keyFile, log: log}
	found := f.read()
	cert, err := found.parse()
	if err != nil {
		return nil, err
	}
	f.current.Store(cert)
	f.loaded = found
	attrs := []any{"file", certFile, "name", nameOf(cert.Leaf), "expires", cert.Leaf.NotAfter}
	if time.Now().After(cert.Leaf.NotAfter) {
		log.Warn("the certificate has expired: replace the files; the server will use the new one without a restart", attrs...)
	} else {
		log.Info("certificate loaded", attrs...)
	}
	return f, nil
}

func (f *files) read() contents {
	cert, certErr := os.ReadFile(f.certFile)
	key, keyErr := os.ReadFile(f.keyFile)
	if err := errors.Join(certErr, keyErr); err != nil {
		return contents{err: err.Error()}
	}
	return contents{cert: string(cert), key: string(key)}
}

// parse returns the certificate, or an error that says what is wrong with the files.
func (c contents) parse() (*tls.Certificate, error) {
	if c.err != "" {
		return nil, errors.New(c.err)
	}
	cert, err := tls.X509KeyPair([]byte(c.cert), []byte(c.key))
	if err != nil {
		return nil, err
	}
	return &cert, nil
}

func (f *files) Run(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			f.check()
		}
	}
}

// check uses the certificate in the files if it is new and usable.
func (f *files) check() {
	found := f.read()
	if found == f.loaded {
		f.unusable, f.checks = contents{}, 0
		return
	}
	cert, err := found.parse()
	if err == nil && time.Now().After(cert.Leaf.NotAfter) {
		err = fmt.Errorf("the certificate expired on %s", cert.Leaf.NotAfter.Format(time.RFC3339))
	}
	if err == nil {
		f.current.Store(cert)
		f.loaded = found
		f.log.Info("certificate replaced: new connections use it", "file", f.certFile, "name", nameOf(cert.Leaf), "expires", cert.Leaf.NotAfter)
		return
	}
	if found != f.unusable {
		f.unusable, f.checks = found, 0
	}
	if f.checks++; f.checks == 2 { // at first, perhaps only one file has been replaced
		f.log.Error("the new certificate can't be used, so the server keeps the old one: fix the files; they are read again within seconds",
			"file", f.certFile, "key_file", f.keyFile, "err", err, "old_expires", f.current.Load().Leaf.NotAfter)
	}
}

func (f *files) Config() *tls.Config {
	return harden(&tls.Config{
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return f.current.Load(), nil },
		NextProtos:     []string{"h2", "http/1.1"},
	})
}

func (f *files) Covers(host string) bool {
	return f.current.Load().Leaf.VerifyHostname(host) == nil
}

func (f *files) Expiries() map[string]time.Time {
	leaf := f.current.Load().Leaf
	return map[string]time.Time{nameOf(leaf): leaf.NotAfter}
}
