package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"animalstore"
	"animalstore/client"
	"animalstore/client/clienttest"
)

// TestCallError covers network failures that a script can't cause.
func TestCallError(t *testing.T) {
	c := connection{url: "https://pets.example"}
	around := func(err error) error {
		return fmt.Errorf("%w (after 3 attempts)", fmt.Errorf("listPets: GET https://pets.example/v1: %w", err))
	}
	tests := []struct {
		err  error
		want string
	}{
		{around(&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}), `no server at https://pets.example: start one with "animalstore serve", or set --url or ANIMALSTORE_URL`},
		{around(&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "pets.example", IsNotFound: true}}), "the host of https://pets.example wasn't found: lookup pets.example: no such host. Check --url"},
		{around(context.DeadlineExceeded), "https://pets.example didn't respond in time: check that it is running, and --url"},
		{around(&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ENETUNREACH)}), "the connection to https://pets.example failed (network is unreachable): check that it is running, and --url"},
		{around(io.ErrUnexpectedEOF), "the connection to https://pets.example failed (unexpected EOF): check that it is running, and --url"},
		{around(&tls.CertificateVerificationError{Err: x509.HostnameError{Host: "pets.example", Certificate: &x509.Certificate{}}}), "the certificate of https://pets.example isn't valid: x509: certificate is not valid for any names, but wanted to match pets.example"},
		{around(&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}), "this machine doesn't trust the certificate of https://pets.example. If it is your own, pass it with --cacert"},
		{around(http.ErrSchemeMismatch), "https://pets.example doesn't use HTTPS: write http:// in --url"},
		{fmt.Errorf("%w; %w", around(io.EOF), client.ErrOutcomeUnknown), "the connection to https://pets.example failed (EOF): check that it is running, and --url. The change may have been made: check before you repeat it"},
		// Nothing to do with the server.
		{errors.New("write /dev/stdout: no space left on device"), "write /dev/stdout: no space left on device"},
	}
	for _, test := range tests {
		err := c.callError(t.Context(), ownerKey, test.err)
		if got := message(err); got != test.want {
			t.Errorf("%v: got\n%s\nwant\n%s", test.err, got, test.want)
		}
		if code := exitCode(err); code != exitError {
			t.Errorf("%v: got exit code %d, want %d", test.err, code, exitError)
		}
	}
	if err := c.callError(t.Context(), ownerKey, nil); err != nil {
		t.Errorf("no error: got %v", err)
	}
}

// TestGetUsesTheList: GET on a pet itself is deprecated, and a command line
// that uses it would break in December 2030.
func TestGetUsesTheList(t *testing.T) {
	var asked []string
	server := clienttest.New(t, clienttest.WithMiddleware(func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked = append(asked, r.Method+" "+r.URL.Path)
			h.ServeHTTP(w, r)
		})
	}))
	if _, err := server.Client.CreatePet(t.Context(), animalstore.NewPet{Name: "Rex", CategoryID: 7}); err != nil {
		t.Fatal(err)
	}
	t.Setenv(keyVariable, server.Key)
	asked = nil
	root := newCommand()
	var out strings.Builder
	root.SetOut(&out)
	root.SetArgs([]string{"pets", "get", "1", "--url", server.URL})
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(asked, ", "); got != "GET /v1/pets" || out.String() != "1\tRex\t7\tavailable\n" {
		t.Errorf("got the requests %q and the output %q, want GET /v1/pets and Rex", got, out.String())
	}
}

// TestKeyIsNeverShown: no message about a key contains the key.
func TestKeyIsNeverShown(t *testing.T) {
	for _, key := range []string{"", "two words secret", "ast_live_secret", "a-secret-created-elsewhere"} {
		refused := &client.Error{Status: http.StatusUnauthorized, Err: animalstore.Errorf(animalstore.InvalidAPIKey, "the API key isn't valid")}
		text := message((&connection{url: "https://pets.example"}).callError(t.Context(), key, refused))
		if err := checkKey(key); err != nil {
			text += message(err)
		}
		if strings.Contains(text, "secret") {
			t.Errorf("%q: got it in %q", key, text)
		}
	}
}
