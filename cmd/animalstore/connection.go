package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"animalstore/client"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// keyVariable is not a flag: arguments can be read by other users.
const keyVariable = "ANIMALSTORE_API_KEY"

// keyHelp is in the help of every group of commands that talk to a server.
const keyHelp = `The server is the one at --url. The API key is read from the environment
variable ` + keyVariable + `, and never from a flag, because other users
of the machine can read arguments.`

const defaultURL = "http://127.0.0.1:8080"

// connection is how the commands that talk to a server find it.
type connection struct {
	url    string
	cacert string
	wait   bool
	bulk   bool // many requests: they keep to the limits and wait
}

func (c *connection) register(flags *pflag.FlagSet) {
	flags.StringVar(&c.url, "url", defaultURL, "`address` of the server")
	flags.StringVar(&c.cacert, "cacert", "", "`file` with the certificate to trust, if it is your own")
	flags.BoolVar(&c.wait, "wait", false, "wait out the key's limits instead of failing")
}

// session is a client for the run of one command, and where it prints.
type session struct {
	*client.Client
	*printer
}

// do runs f with a client. Errors of the client come back in words.
func (c *connection) do(cmd *cobra.Command, asJSON bool, f func(session) error) error {
	key := os.Getenv(keyVariable)
	if err := checkKey(key); err != nil {
		return err
	}
	if c.url == "" { // ANIMALSTORE_URL= is how a shell takes a variable back
		c.url = defaultURL
	}
	shown := newCountdown(cmd.ErrOrStderr())
	options, err := c.options(shown)
	if err != nil {
		return err
	}
	calls, err := client.New(c.url, key, options...)
	if err != nil {
		text := strings.TrimPrefix(err.Error(), "animalstore client: ")
		return usageError{errors.New(strings.Replace(text, "the base URL", "--url (or ANIMALSTORE_URL)", 1))}
	}
	defer calls.CloseIdleConnections()
	defer shown.end()
	p := newPrinter(cmd, asJSON)
	p.out, p.notes = afterCountdown{p.out, shown}, afterCountdown{p.notes, shown}
	return c.explain(cmd.Context(), key, f(session{calls, p}))
}

// showCommand shows one thing of a group, by its id. Its Example is for the
// caller to set.
func showCommand[T any](conn *connection, thing, group string, columns []column[T], get func(context.Context, session, int64) (T, error)) *cobra.Command {
	var asJSON *bool
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show one " + thing,
		Args:  oneID(thing, group),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseID(args[0], group)
			if err != nil {
				return err
			}
			return conn.do(cmd, *asJSON, func(s session) error {
				item, err := get(cmd.Context(), s, id)
				if err != nil {
					return err
				}
				return printItem(s.printer, item, columns)
			})
		},
	}
	asJSON = jsonFlag(cmd)
	return cmd
}

// bulkAttempts are about five minutes: a server that is gone for longer is a
// reason to stop.
const bulkAttempts = 14

// How often a call is sent without --wait: a lost connection is no reason to
// fail, but a person waits for the error of a server that is not there.
const (
	quickAttempts = 3
	quickBackoff  = 100 * time.Millisecond
)

func (c *connection) options(shown *countdown) ([]client.Option, error) {
	options := []client.Option{client.WithUserAgent("animalstore-cli/" + versionString())}
	if c.bulk {
		options = append(options, client.WithPacing(), client.WithMaxAttempts(bulkAttempts))
	}
	if c.wait || c.bulk {
		options = append(options, client.WithOnWait(shown.begin))
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
		return nil, usageError{fmt.Errorf("--cacert: there is no certificate in %s: it must be PEM, with BEGIN CERTIFICATE", c.cacert)}
	}
	transport.TLSClientConfig = &tls.Config{RootCAs: roots}
	return append(options, client.WithHTTPClient(&http.Client{Transport: transport})), nil
}

// checkKey refuses what cannot be a key before anything is sent.
func checkKey(key string) error {
	text := ""
	switch {
	case key == "":
		text = "no API key: put yours into the environment variable " + keyVariable + ". " +
			`The first "animalstore serve" prints one, and "animalstore keys create" makes more. ` +
			"It is not a flag, because other users of the machine can read arguments"
	case strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }):
		text = "the value of " + keyVariable + " is no API key: it has a blank, a line break or another character in it that no key has"
	default:
		return nil
	}
	return toldError{errors.New("no usable API key"), text, exitCredential}
}
