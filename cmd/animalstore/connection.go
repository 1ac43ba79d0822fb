package main

import (
	"errors"
	"os"

	"animalstore/client"
	"animalstore/internal/remote"
	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const (
	keyVariable = remote.KeyVariable
	defaultURL  = remote.DefaultURL
	maxPage     = remote.MaxPage
)

// keyHelp is in the help of every group of commands that call a server.
const keyHelp = `Requests go to the server at --url. The API key is read from the environment
variable ` + keyVariable + `, and never from a flag, because other users
of the machine can read arguments.`

// connection is the flags that say how to call a server.
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

func (c *connection) server() remote.Server {
	return remote.Server{URL: c.url, CACert: c.cacert, Wait: c.wait, Bulk: c.bulk, UserAgent: "animalstore-cli/" + versionString()}
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
	calls, err := c.server().Client(key, countdown)
	if err != nil {
		return usagef("%w", err)
	}
	defer calls.CloseIdleConnections()
	defer countdown.End()
	p := newPrinter(cmd)
	p.Out, p.Notes = countdown.Before(p.Out), line.Above(p.Notes)
	return c.explain(cmd.Context(), key, f(session{calls, p, line}))
}

// checkKey refuses an impossible key before anything is sent.
func checkKey(key string) error {
	if err := remote.CheckKey(key); err != nil {
		return cliError{errors.New("no usable API key"), err.Error(), exitCredential}
	}
	return nil
}
