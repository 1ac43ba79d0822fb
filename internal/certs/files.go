package certs

import (
	"bytes"
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
	every             time.Duration
	log               *slog.Logger
	current           atomic.Pointer[tls.Certificate]

	// Only Run uses these.
	loaded  contents // the contents behind current
	pending contents // unusable once: perhaps only one file has been replaced so far
	refused contents // unusable twice, and logged
}

// contents are the contents of both files, or the reason why they couldn't be read.
type contents struct{ cert, key, err string }

// Files returns the certificate in two files, which Run reads again at this interval; 0
// means every second. It fails if there is no usable certificate. An expired one is
// usable: most clients refuse it, but an operator can still connect to replace it.
func Files(certFile, keyFile string, every time.Duration, log *slog.Logger) (Certificates, error) {
	if every == 0 {
		every = time.Second
	}
	f := &files{certFile: certFile, keyFile: keyFile, every: every, log: log}
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
	for _, file := range []struct{ name, text string }{{"certificate", c.cert}, {"key", c.key}} {
		if len(bytes.TrimSpace([]byte(file.text))) == 0 {
			return nil, fmt.Errorf("the file of the %s is empty", file.name)
		}
	}
	cert, err := tls.X509KeyPair([]byte(c.cert), []byte(c.key))
	if err != nil {
		return nil, err
	}
	return &cert, nil
}

func (f *files) Run(ctx context.Context) {
	tick := time.NewTicker(f.every)
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
	switch found {
	case f.loaded:
		f.pending, f.refused = contents{}, contents{}
		return
	case f.refused:
		return
	}
	cert, err := found.parse()
	if err == nil && time.Now().After(cert.Leaf.NotAfter) {
		err = fmt.Errorf("the certificate expired on %s", cert.Leaf.NotAfter.Format(time.RFC3339))
	}
	switch {
	case err == nil:
		f.current.Store(cert)
		f.loaded, f.pending, f.refused = found, contents{}, contents{}
		f.log.Info("certificate replaced: new connections use it", "file", f.certFile, "name", nameOf(cert.Leaf), "expires", cert.Leaf.NotAfter)
	case found != f.pending:
		f.pending = found
	default:
		f.refused = found
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
