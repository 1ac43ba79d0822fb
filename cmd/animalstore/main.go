// Command animalstore serves a store's animals over HTTP and manages its keys.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/db/postgres"
	"animalstore/internal/db/sqlite"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Exit codes, for scripts.
const (
	exitError    = 1
	exitUsage    = 2
	exitNotFound = 5
)

// version is set by the release build.
var version = ""

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A later signal ends the process at once, but not one that comes with the
	// first: some programs signal both a process and its group.
	context.AfterFunc(ctx, func() { time.AfterFunc(time.Second, stop) })
	if err := newCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "animalstore:", message(err))
		os.Exit(exitCode(err))
	}
}

func newCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "animalstore",
		Short: "A store's animals over HTTP",
		Long: `animalstore keeps a store's animals and orders and serves them over HTTP.

Start a server with "animalstore serve". The first start prints a key and a
curl line to try. Every flag can also be set in the environment: --listen is
ANIMALSTORE_LISTEN, --log-format is ANIMALSTORE_LOG_FORMAT, and so on.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return readEnvironment(cmd)
		},
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w. See %q", err, cmd.CommandPath()+" --help")}
	})
	root.AddCommand(serveCommand(), keysCommand(), seedCommand(), versionCommand())
	return root
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  animalstore version",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			fmt.Fprintln(cmd.OutOrStdout(), "animalstore", versionString())
			return nil
		},
	}
}

func versionString() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// readEnvironment sets the flags that were not given from the environment.
func readEnvironment(cmd *cobra.Command) error {
	var err error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		name := "ANIMALSTORE_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		value, ok := os.LookupEnv(name)
		if f.Changed || !ok || err != nil {
			return
		}
		if e := cmd.Flags().Set(f.Name, value); e != nil {
			err = usageError{fmt.Errorf("the environment variable %s: %w", name, e)}
		}
	})
	return err
}

const databaseUsage = "where the store is kept: sqlite:FILE or postgres://USER@HOST/NAME"

// openDatabase opens what a --database flag names.
func openDatabase(ctx context.Context, url string, opts sqlite.Options) (db.DB, error) {
	if postgres.Is(url) {
		if err := postgres.CheckURL(url); err != nil {
			return nil, usageError{fmt.Errorf("--database: %w", err)}
		}
		return postgres.Open(ctx, url, postgres.Options{MustExist: opts.MustExist})
	}
	scheme, path, _ := strings.Cut(url, ":")
	if scheme != "sqlite" || path == "" {
		// The value may hold a password, so it is not repeated.
		return nil, usageError{errors.New("--database must be sqlite:FILE, such as sqlite:animalstore.db, or a URL like postgres://user@host:5432/database")}
	}
	return sqlite.Open(ctx, path, opts)
}

// shownDatabase is what may be shown of a --database flag: no credential.
func shownDatabase(url string) string {
	if postgres.Is(url) {
		return postgres.Redacted(url)
	}
	return url
}

// usageError is a mistake in the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("%q takes no arguments, but got %q. See %q", cmd.CommandPath(), args[0], cmd.CommandPath()+" --help")}
	}
	return nil
}

// onlySubcommands runs a command that only groups others: cobra would print its
// help and succeed where the name of the subcommand is mistyped.
func onlySubcommands(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("%q has no command %q. See %q", cmd.CommandPath(), args[0], cmd.CommandPath()+" --help")}
	}
	return cmd.Help()
}

// message is what a person reads of an error.
func message(err error) string {
	var coded *animalstore.Error
	if errors.As(err, &coded) {
		return strings.Replace(err.Error(), coded.Error(), coded.Message, 1) // the code is for programs
	}
	return err.Error()
}

func exitCode(err error) int {
	var usage usageError
	var coded *animalstore.Error
	switch {
	case errors.As(err, &usage), strings.HasPrefix(err.Error(), "unknown command"), strings.HasPrefix(err.Error(), "required flag"):
		return exitUsage
	case errors.As(err, &coded) && coded.Code == animalstore.ValidationFailed:
		return exitUsage
	case errors.Is(err, db.ErrNotFound):
		return exitNotFound
	}
	return exitError
}
