package certs

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// pair is a certificate and its key in PEM.
type pair struct {
	serial    int64
	cert, key []byte
}

func newPair(t *testing.T, serial int64, expires time.Duration) pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial),
		NotAfter:     time.Now().Add(expires),
		DNSNames:     []string{"shop.example"},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pair{
		serial,
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
	}
}

func (p pair) write(t *testing.T, dir string) {
	t.Helper()
	writeFile(t, filepath.Join(dir, "cert.pem"), p.cert)
	writeFile(t, filepath.Join(dir, "key.pem"), p.key)
}

func writeFile(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// watched are files that are checked when the test says so.
type watched struct {
	*files
	log bytes.Buffer
}

func watch(t *testing.T, dir string) *watched {
	t.Helper()
	w := &watched{}
	certs, err := Files(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), slog.New(slog.NewTextHandler(&w.log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	w.files = certs.(*files)
	return w
}

func (w *watched) want(t *testing.T, when string, serial int64) {
	t.Helper()
	cert := w.current.Load()
	if got := cert.Leaf.SerialNumber.Int64(); got != serial {
		t.Errorf("%s: got certificate %d, want %d", when, got, serial)
	}
	if !cert.Leaf.PublicKey.(*ecdsa.PublicKey).Equal(cert.PrivateKey.(*ecdsa.PrivateKey).Public()) {
		t.Errorf("%s: the key doesn't match the certificate", when)
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// TestCertificateFilesChange: however the files are replaced, the new certificate is
// used as soon as both are there, and never with the wrong key.
func TestCertificateFilesChange(t *testing.T) {
	first, second := newPair(t, 1, time.Hour), newPair(t, 2, time.Hour)
	for name, replace := range map[string]func(t *testing.T, dir string, between func()){
		"in place": func(t *testing.T, dir string, between func()) {
			writeFile(t, filepath.Join(dir, "key.pem"), second.key)
			between()
			writeFile(t, filepath.Join(dir, "cert.pem"), second.cert)
		},
		"half written": func(t *testing.T, dir string, between func()) {
			writeFile(t, filepath.Join(dir, "key.pem"), second.key)
			writeFile(t, filepath.Join(dir, "cert.pem"), second.cert[:len(second.cert)/2])
			between()
			writeFile(t, filepath.Join(dir, "cert.pem"), second.cert)
		},
		"renamed": func(t *testing.T, dir string, between func()) {
			second.write(t, filepath.Join(dir, "new"))
			rename(t, filepath.Join(dir, "new", "cert.pem"), filepath.Join(dir, "cert.pem"))
			between()
			rename(t, filepath.Join(dir, "new", "key.pem"), filepath.Join(dir, "key.pem"))
		},
		"removed first": func(t *testing.T, dir string, between func()) {
			os.Remove(filepath.Join(dir, "cert.pem"))
			between()
			second.write(t, dir)
		},
		"same time and size": func(t *testing.T, dir string, between func()) {
			info, err := os.Stat(filepath.Join(dir, "cert.pem"))
			if err != nil {
				t.Fatal(err)
			}
			second.write(t, dir)
			for _, file := range []string{"cert.pem", "key.pem"} {
				if err := os.Chtimes(filepath.Join(dir, file), info.ModTime(), info.ModTime()); err != nil {
					t.Fatal(err)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			first.write(t, dir)
			w := watch(t, dir)
			replace(t, dir, func() {
				w.check()
				w.want(t, "after one file", 1)
			})
			w.check()
			w.want(t, "after both files", 2)
			if log := w.log.String(); strings.Contains(log, "level=ERROR") {
				t.Errorf("got this log, want no error:\n%s", log)
			}
		})
	}
}

// TestCertificateFilesBehindLinks: Kubernetes swaps a link to a directory, and certbot
// a link to each file.
func TestCertificateFilesBehindLinks(t *testing.T) {
	dir := t.TempDir()
	link := func(target, name string) {
		t.Helper()
		if err := os.Symlink(target, filepath.Join(dir, "swap")); err != nil {
			t.Fatal(err)
		}
		rename(t, filepath.Join(dir, "swap"), filepath.Join(dir, name))
	}
	newPair(t, 1, time.Hour).write(t, filepath.Join(dir, "v1"))
	newPair(t, 2, time.Hour).write(t, filepath.Join(dir, "v2"))
	link("v1", "..data")
	link("..data/cert.pem", "cert.pem")
	link("..data/key.pem", "key.pem")
	w := watch(t, dir)
	w.want(t, "at the start", 1)
	link("v2", "..data")
	w.check()
	w.want(t, "after a swap of the directory", 2)
	link("v1/cert.pem", "cert.pem")
	w.check()
	w.want(t, "after a swap of one file", 2)
	link("v1/key.pem", "key.pem")
	w.check()
	w.want(t, "after a swap of both files", 1)
}

// TestCertificateFilesAreReadEverySecond: a server reads them again without being told.
func TestCertificateFilesAreReadEverySecond(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		newPair(t, 1, time.Hour).write(t, dir)
		w := watch(t, dir)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go w.Run(ctx)
		newPair(t, 2, time.Hour).write(t, dir)
		w.want(t, "before a second has passed", 1)
		time.Sleep(time.Second)
		synctest.Wait()
		w.want(t, "after a second", 2)
	})
}

// TestBrokenCertificateFiles: the old certificate stays in use, and the log says once
// what is wrong.
func TestBrokenCertificateFiles(t *testing.T) {
	good, other, old := newPair(t, 1, time.Hour), newPair(t, 2, time.Hour), newPair(t, 3, -time.Minute)
	for name, c := range map[string]pair{
		"no PEM":        {cert: []byte("broken"), key: good.key},
		"empty":         {cert: nil, key: good.key},
		"empty key":     {cert: other.cert, key: []byte("\n")},
		"both empty":    {},
		"another key":   {cert: other.cert, key: good.key},
		"expired":       {cert: old.cert, key: old.key},
		"files swapped": {cert: good.key, key: good.cert},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			good.write(t, dir)
			w := watch(t, dir)
			c.write(t, dir)
			for range 3 {
				w.check()
				w.want(t, "with broken files", 1)
			}
			if log := w.log.String(); strings.Count(log, "level=ERROR") != 1 || !strings.Contains(log, "old_expires=") {
				t.Errorf("got this log, want one error with when the old certificate expires:\n%s", log)
			}
			os.Remove(filepath.Join(dir, "key.pem"))
			w.check()
			w.check()
			if log := w.log.String(); strings.Count(log, "level=ERROR") != 2 {
				t.Errorf("got this log, want a second error for the second change:\n%s", log)
			}
			other.write(t, dir)
			for range 2 {
				w.check()
				w.want(t, "with good files", 2)
			}
			c.write(t, dir)
			w.check()
			w.check()
			if log := w.log.String(); strings.Count(log, "level=ERROR") != 3 {
				t.Errorf("got this log, want a third error when the files are broken again:\n%s", log)
			}
		})
	}
}
