// Command animalstore serves a store's pets over HTTP, manages its keys, and
// calls such a server on behalf of people and scripts.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"animalstore"
	"animalstore/internal/commandline"
	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
)

// commit is set by make, which builds without Go's own stamp of the commit.
var commit = ""

// generators are commands of builds that make a release: see man.go.
var generators []func() *cobra.Command

func main() {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		cancel(signalError{<-signals})
		// A second signal ends the process at once, unless it comes together with the
		// first: some programs signal both a process and its group.
		time.AfterFunc(time.Second, func() { signal.Stop(signals) })
	}()
	err := newCommand().ExecuteContext(ctx)
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, terminal.Wrap("animalstore: "+message(err), terminal.ScreenOf(os.Stderr).Width))
	var got signalError
	if errors.As(context.Cause(ctx), &got) {
		os.Exit(got.exitCode())
	}
	os.Exit(exitCode(err))
}

// signalError is why a command stopped before it was done.
type signalError struct{ os.Signal }

func (e signalError) Error() string { return "received the signal " + e.String() }

// exitCode is the one that shells use: 130 after Ctrl-C.
func (e signalError) exitCode() int {
	number, _ := e.Signal.(syscall.Signal)
	return 128 + int(number)
}

func newCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "animalstore",
		Short: "A store's pets over HTTP",
		Long: `animalstore manages a store's pets and orders and serves them over HTTP.

Start a server with "animalstore serve". The first start prints a key, and a
curl command to try it. With the key in ANIMALSTORE_API_KEY the client commands
work:

  export ANIMALSTORE_API_KEY=ast_live_...
  animalstore pets create --name Rex --category 7
  animalstore pets list

Lists are tables on a terminal and tab-separated lines in a pipe; --json prints
JSON. NO_COLOR is respected.

Every flag can also be set in the environment: --url is ANIMALSTORE_URL,
--log-format is ANIMALSTORE_LOG_FORMAT, and so on.

Exit codes: 0 success, 1 error, 2 incorrect usage, 4 key missing or refused,
5 not found, 6 rate limited, 130 stopped by Ctrl-C.`,
		Version:       versionString(),
		Args:          cobra.ArbitraryArgs,
		RunE:          onlySubcommands,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return readEnvironment(cmd)
		},
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{commandline.ExplainFlag(cmd, err)}
	})
	root.SetVersionTemplate("animalstore {{.Version}}\n")
	root.Flags().BoolP("version", "v", false, "print the version")
	root.AddCommand(serveCommand(), keysCommand(), seedCommand(), dbCommand(), healthcheckCommand(), versionCommand())
	root.AddCommand(petsCommand(), ordersCommand(), categoriesCommand(), eventsCommand(), webhooksCommand(), limitsCommand(), usageCommand(), completionCommand())
	for _, command := range generators {
		root.AddCommand(command())
	}
	arrangeHelp(root)
	root.CompletionOptions.DisableDefaultCmd = true
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	return root
}

func versionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  animalstore version\n  animalstore version --json",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if p := newPrinter(cmd); p.JSON {
				return p.PrintJSON(map[string]string{"version": versionString(), "go": runtime.Version()})
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "animalstore", versionString())
			return err
		},
	}
	jsonFlag(cmd)
	return cmd
}

// versionString is the version of a release, and between releases also the commit
// that was built, if that is known: 1.3.0-dev+0123456789ab.
func versionString() string {
	v := animalstore.Version()
	built := cmp.Or(commit, stampedCommit())
	if built == "" || !strings.HasSuffix(v, "-dev") {
		return v
	}
	return v + "+" + built
}

// stampedCommit is the commit as go build and go install record it, "" if they don't.
func stampedCommit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	revision, modified := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = ".modified"
		}
	}
	if revision == "" {
		return ""
	}
	return revision + modified
}
