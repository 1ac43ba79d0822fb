package main

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"os"
	"strings"
	"time"

	"animalstore/client"
	"animalstore/internal/cli"
	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const (
	// keyVariable is the environment variable with the API key. It is not a flag: other
	// users can read arguments.
	keyVariable = "ANIMALSTORE_API_KEY"
	// defaultURL is where "animalstore serve" listens.
	defaultURL = "http://127.0.0.1:8080"
	// maxPage is the largest page that a server returns.
	maxPage = 100
)

// keyHelp is in the help of every group of commands that call a server.
const keyHelp = `Requests go to the server at --url. Set the API key in ` + keyVariable + `.
There is no flag for it, because other users of the machine can see flags.`

// connection is the flags that say how to call a server.
type connection struct {
	url    string
	cacert string
	wait   bool // when a limit is reached, instead of failing
	bulk   bool // many requests, which stay within the limits and wait
}

func (c *connection) register(cmd *cobra.Command, flags *pflag.FlagSet) {
	flags.StringVar(&c.url, "url", defaultURL, "`address` of the server")
	flags.StringVar(&c.cacert, "cacert", "", "`file` with a certificate to trust, such as your own")
	cli.CompleteFlag(cmd, "cacert", cli.CompleteFiles)
	flags.BoolVar(&c.wait, "wait", false, "when a limit is reached, wait instead of failing")
}

// command makes cmd, which is in no group, call run with a client.
func (c *connection) command(cmd *cobra.Command, run func(cmd *cobra.Command, s invocation) error) *cobra.Command {
	cmd.Args = cli.NoArguments
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return c.do(cmd, func(s invocation) error { return run(cmd, s) })
	}
	c.register(cmd, cmd.Flags())
	jsonFlag(cmd)
	return cmd
}

// address is the server's URL. An empty ANIMALSTORE_URL counts as unset.
func (c *connection) address() string { return cmp.Or(c.url, defaultURL) }

// invocation is one run of a command that calls a server: its client and its printer.
type invocation struct {
	*client.Client
	*terminal.Printer
	line *terminal.Line // says what the command is doing
}

// do runs f with a client. Its errors say what to do.
func (c *connection) do(cmd *cobra.Command, f func(invocation) error) error {
	key := os.Getenv(keyVariable)
	if err := checkKey(key); err != nil {
		return err
	}
	line := terminal.NewLine(cmd.ErrOrStderr())
	calls, err := c.newClient(key, c.waiting(line)...)
	if err != nil {
		return err
	}
	defer calls.CloseIdleConnections()
	defer line.Show("")
	p := newPrinter(cmd)
	p.Out, p.Notes = line.Above(p.Out), line.Above(p.Notes)
	return c.callError(cmd.Context(), key, f(invocation{calls, p, line}))
}

const (
	// bulkAttempts take about five minutes. If the server is gone for longer, the
	// command stops.
	bulkAttempts = 14
	// Without --wait a lost connection is retried only briefly: a person is waiting.
	quickAttempts = 3
	quickBackoff  = 100 * time.Millisecond
)

// waiting returns how long the client waits and retries, and shows its waits in line.
func (c *connection) waiting(line *terminal.Line) []client.Option {
	switch onWait := client.WithOnWait(showWait(line)); {
	case c.bulk:
		return []client.Option{onWait, client.WithPacing(), client.WithMaxAttempts(bulkAttempts)}
	case c.wait:
		return []client.Option{onWait}
	}
	return []client.Option{client.WithMaxWait(0), client.WithMaxAttempts(quickAttempts), client.WithBackoff(quickBackoff, time.Second)}
}

// newClient returns a client with these options.
func (c *connection) newClient(key string, options ...client.Option) (*client.Client, error) {
	options = append(options, client.WithUserAgent("animalstore-cli/"+versionString()))
	if c.cacert != "" {
		transport, err := c.transport()
		if err != nil {
			return nil, err
		}
		options = append(options, client.WithHTTPClient(&http.Client{Transport: transport}))
	}
	calls, err := client.New(c.address(), key, options...)
	var wrong *client.BaseURLError
	if errors.As(err, &wrong) {
		return nil, cli.Usagef("--url (or ANIMALSTORE_URL) %s", wrong.Reason)
	}
	return calls, err
}

// transport trusts the certificate in --cacert, or those that the system trusts.
func (c *connection) transport() (*http.Transport, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if c.cacert == "" {
		return transport, nil
	}
	pem, err := os.ReadFile(c.cacert)
	if err != nil {
		return nil, cli.Usagef("--cacert: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, cli.Usagef("--cacert: %s contains no certificate: it must be PEM, with BEGIN CERTIFICATE", c.cacert)
	}
	transport.TLSClientConfig = &tls.Config{RootCAs: roots}
	return transport, nil
}

// showWait is a hook for [client.WithOnWait].
func showWait(line *terminal.Line) func(client.Wait) {
	return func(wait client.Wait) {
		reason := "request failed (" + terminal.Visible(rootCause(wait.Reason)) + ")"
		var limit *client.RateLimitError
		if errors.As(wait.Reason, &limit) {
			reason = limitReached(limit)
		}
		line.Wait(wait.For, reason)
	}
}

// checkKey refuses an impossible key before anything is sent. The error doesn't contain
// it.
func checkKey(key string) error {
	text := ""
	switch {
	case key == "":
		text = "no API key: set " + keyVariable + `. "animalstore keys create" creates a key`
	case strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }):
		text = "the key in " + keyVariable + " contains invalid characters: copy it again"
	default:
		return nil
	}
	return cliError{errors.New("no usable API key"), text, exitCredential}
}
