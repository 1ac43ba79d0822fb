package main

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

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// keyVariable is not a flag: other users can read arguments.
const keyVariable = "ANIMALSTORE_API_KEY"

// keyHelp is in the help of every group of commands that call a server.
const keyHelp = `Requests go to the server at --url. The API key is read from the environment
variable ` + keyVariable + `, and never from a flag, because other users
of the machine can read arguments.`

const defaultURL = "http://127.0.0.1:8080"

// connection says how to call a server.
type connection struct {
	url    string
	cacert string
	wait   bool
	bulk   bool // many requests, which stay within the limits and wait
}

func (c *connection) register(cmd *cobra.Command, flags *pflag.FlagSet) {
	flags.StringVar(&c.url, "url", defaultURL, "`address` of the server")
	flags.StringVar(&c.cacert, "cacert", "", "`file` with a certificate to trust, such as your own")
	completeFlag(cmd, "cacert", completeFiles)
	flags.BoolVar(&c.wait, "wait", false, "wait when the key's limits are used up, instead of failing")
}

// session is the client for one command, and its printer.
type session struct {
	*client.Client
	*terminal.Printer
	line *terminal.Line // says what the command is doing
}

// do runs f with a client, and explains its errors.
func (c *connection) do(cmd *cobra.Command, f func(session) error) error {
	key := os.Getenv(keyVariable)
	if err := checkKey(key); err != nil {
		return err
	}
	stderr := cmd.ErrOrStderr()
	line := terminal.NewLine(stderr, terminal.ScreenOf(stderr))
	countdown := terminal.NewCountdown(line)
	options, err := c.options(countdown)
	if err != nil {
		return err
	}
	calls, err := client.New(c.address(), key, options...)
	if err != nil {
		text := strings.TrimPrefix(err.Error(), "animalstore client: ")
		return usageError{errors.New(strings.Replace(text, "the base URL", "--url (or ANIMALSTORE_URL)", 1))}
	}
	defer calls.CloseIdleConnections()
	defer countdown.End()
	p := newPrinter(cmd)
	p.Out, p.Notes = countdown.Before(p.Out), line.Above(p.Notes)
	return c.explain(cmd.Context(), key, f(session{calls, p, line}))
}

// address is the server's. ANIMALSTORE_URL= unsets the variable in some shells.
func (c *connection) address() string { return cmp.Or(c.url, defaultURL) }

func newPrinter(cmd *cobra.Command) *terminal.Printer {
	asJSON := cmd.Flag("json") != nil && cmd.Flag("json").Value.String() == "true"
	return terminal.NewPrinter(cmd.OutOrStdout(), cmd.ErrOrStderr(), asJSON)
}

// bulkAttempts take about five minutes. If the server is gone for longer, the
// command stops.
const bulkAttempts = 14

// Without --wait, a lost connection is retried, but a person shouldn't wait long
// to learn that the server isn't there.
const (
	quickAttempts = 3
	quickBackoff  = 100 * time.Millisecond
)

func (c *connection) options(countdown *terminal.Countdown) ([]client.Option, error) {
	options := []client.Option{client.WithUserAgent("animalstore-cli/" + versionString())}
	if c.bulk {
		options = append(options, client.WithPacing(), client.WithMaxAttempts(bulkAttempts))
	}
	if c.wait || c.bulk {
		options = append(options, client.WithOnWait(showWait(countdown)))
	} else {
		options = append(options, client.WithMaxWait(0), client.WithMaxAttempts(quickAttempts), client.WithBackoff(quickBackoff, time.Second))
	}
	if c.cacert == "" {
		return options, nil
	}
	pem, err := os.ReadFile(c.cacert)
	if err != nil {
		return nil, usageError{fmt.Errorf("--cacert: %w", err)}
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, usageError{fmt.Errorf("--cacert: %s contains no certificate: it must be PEM, with BEGIN CERTIFICATE", c.cacert)}
	}
	transport.TLSClientConfig = &tls.Config{RootCAs: roots}
	return append(options, client.WithHTTPClient(&http.Client{Transport: transport})), nil
}

// showWait is a hook for [client.WithOnWait].
func showWait(countdown *terminal.Countdown) func(client.Wait) {
	return func(wait client.Wait) {
		var limit *client.RateLimitError
		if errors.As(wait.Reason, &limit) {
			countdown.Start(wait.For, diagnose.Limit(limit), "continuing")
			return
		}
		countdown.Start(wait.For, "The request failed ("+terminal.Visible(diagnose.RootCause(wait.Reason))+")", "trying again")
	}
}

// checkKey refuses an impossible key before anything is sent.
func checkKey(key string) error {
	text := ""
	switch {
	case key == "":
		text = "no API key: put yours in the environment variable " + keyVariable + ". " +
			`The first "animalstore serve" prints one, and "animalstore keys create" creates more. ` +
			"It isn't a flag, because other users of the machine can read arguments"
	case strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }):
		text = "the value of " + keyVariable + " isn't a valid API key: it contains a space, a line break or another character that no key has"
	default:
		return nil
	}
	return cliError{errors.New("no usable API key"), text, exitCredential}
}
