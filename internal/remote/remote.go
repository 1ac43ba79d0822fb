// Package remote is how commands call a server: with which client, what they show while
// it waits, and where completion finds ids.
package remote

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"animalstore/client"
	"animalstore/internal/diagnose"
	"animalstore/internal/terminal"
)

// KeyVariable is the environment variable with the API key. It is not a flag: other
// users can read arguments.
const KeyVariable = "ANIMALSTORE_API_KEY"

// DefaultURL is where "animalstore serve" listens.
const DefaultURL = "http://127.0.0.1:8080"

// Server says how to call a server.
type Server struct {
	URL       string // DefaultURL if empty: ANIMALSTORE_URL= unsets the variable in some shells
	CACert    string // file with a certificate to trust; may be empty
	Wait      bool   // wait when the key's limits are used up, instead of failing
	Bulk      bool   // many requests, which stay within the limits and wait
	UserAgent string
}

// Address is the server's URL.
func (s Server) Address() string { return cmp.Or(s.URL, DefaultURL) }

// Client returns a client that shows in countdown what it waits for. Errors name the
// flags of commands.
func (s Server) Client(key string, countdown *terminal.Countdown) (*client.Client, error) {
	options, err := s.options()
	if err != nil {
		return nil, err
	}
	if s.Bulk {
		options = append(options, client.WithPacing(), client.WithMaxAttempts(bulkAttempts))
	}
	if s.Wait || s.Bulk {
		options = append(options, client.WithOnWait(ShowWait(countdown)))
	} else {
		options = append(options, client.WithMaxWait(0), client.WithMaxAttempts(quickAttempts), client.WithBackoff(quickBackoff, time.Second))
	}
	calls, err := client.New(s.Address(), key, options...)
	if err != nil {
		text := strings.TrimPrefix(err.Error(), "animalstore client: ")
		return nil, errors.New(strings.Replace(text, "the base URL", "--url (or ANIMALSTORE_URL)", 1))
	}
	return calls, nil
}

// QuietClient returns a client that neither waits nor retries, nil if there can't be
// one.
func (s Server) QuietClient(key string) *client.Client {
	options, err := s.options()
	if err != nil || CheckKey(key) != nil {
		return nil
	}
	calls, err := client.New(s.Address(), key, append(options, client.WithMaxWait(0), client.WithMaxAttempts(1))...)
	if err != nil {
		return nil
	}
	return calls
}

// bulkAttempts take about five minutes. If the server is gone for longer, the
// command stops.
const bulkAttempts = 14

// Without Wait, a lost connection is retried, but a person shouldn't wait long to learn
// that the server isn't there.
const (
	quickAttempts = 3
	quickBackoff  = 100 * time.Millisecond
)

// options are those of every client.
func (s Server) options() ([]client.Option, error) {
	options := []client.Option{client.WithUserAgent(s.UserAgent)}
	if s.CACert == "" {
		return options, nil
	}
	pem, err := os.ReadFile(s.CACert)
	if err != nil {
		return nil, fmt.Errorf("--cacert: %w", err)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("--cacert: %s contains no certificate: it must be PEM, with BEGIN CERTIFICATE", s.CACert)
	}
	transport.TLSClientConfig = &tls.Config{RootCAs: roots}
	return append(options, client.WithHTTPClient(&http.Client{Transport: transport})), nil
}

// ShowWait is a hook for [client.WithOnWait].
func ShowWait(countdown *terminal.Countdown) func(client.Wait) {
	return func(wait client.Wait) {
		var limit *client.RateLimitError
		if errors.As(wait.Reason, &limit) {
			countdown.Start(wait.For, diagnose.Limit(limit), "continuing")
			return
		}
		countdown.Start(wait.For, "The request failed ("+terminal.Visible(diagnose.RootCause(wait.Reason))+")", "trying again")
	}
}

// CheckKey refuses an impossible key before anything is sent. The error doesn't contain
// it.
func CheckKey(key string) error {
	switch {
	case key == "":
		return errors.New("no API key: put yours in the environment variable " + KeyVariable + ". " +
			`The first "animalstore serve" prints one, and "animalstore keys create" creates more. ` +
			"It isn't a flag, because other users of the machine can read arguments")
	case strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }):
		return errors.New("the value of " + KeyVariable + " isn't a valid API key: it contains a space, a line break or another character that no key has")
	}
	return nil
}

// IfMatch is the condition of --if-match; none if that is empty. It adds the quotes of an
// ETag if they are missing, because shells remove them.
func IfMatch(etag string) []client.CallOption {
	if etag == "" {
		return nil
	}
	if etag != "*" && !strings.HasPrefix(etag, `"`) {
		etag = `"` + etag + `"`
	}
	return []client.CallOption{client.IfMatch(etag)}
}
