package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/db/sqlite"
	"animalstore/internal/keys"

	"github.com/spf13/cobra"
)

func keysCommand() *cobra.Command {
	var at keysPlace
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "Make, show, change and revoke API keys",
		Long: `Make, show, change and revoke API keys: straight in the database, or over HTTP
with a key that has the permission admin.

They work on --database, unless --url is given or ANIMALSTORE_URL is set. A flag
that is given wins over the environment. On the database all of it works while a
server runs there, and takes effect within a second.

Over HTTP, your own key is read from the environment variable
` + keyVariable + `, and never from a flag, because other users of the
machine can read arguments.`,
		Example: `  animalstore keys create --name shop --plan pro
  animalstore keys list
  animalstore keys list --url https://pets.example`,
		DisableFlagsInUseLine: true,
		Args:                  cobra.ArbitraryArgs,
		RunE:                  onlySubcommands,
	}
	cmd.PersistentFlags().StringVar(&at.database, "database", "sqlite:animalstore.db", databaseUsage)
	at.server.register(cmd.PersistentFlags())
	cmd.AddCommand(keysCreateCommand(&at), keysImportCommand(&at),
		keysListCommand(&at), keysShowCommand(&at), keysUsageCommand(&at),
		keysRotateCommand(&at), keysSetPlanCommand(&at), keysRevokeCommand(&at), keysUnbanCommand(&at))
	return cmd
}

// newKeyFlags are what create and import have in common.
type newKeyFlags struct {
	name, plan, permissions, expires, environment string
	limits                                        animalstore.Limits
}

func (f *newKeyFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.name, "name", "", "whose key it is (required)")
	flags.StringVar(&f.permissions, "permissions", "read,write", "comma-separated: read, write, admin")
	flags.StringVar(&f.expires, "expires", "", "how long the key works, such as 90d, 12h or 30m (default for ever)")
	flags.StringVar(&f.environment, "environment", "production", "deployment it opens: production or staging")
	registerPlan(cmd, "free", &f.plan, &f.limits)
}

func registerPlan(cmd *cobra.Command, usual string, plan *string, limits *animalstore.Limits) {
	flags := cmd.Flags()
	flags.StringVar(plan, "plan", usual, alternatives(names(animalstore.Plans)))
	flags.Int64Var(&limits.PerMinute, "per-minute", 0, "requests a minute, on plan enterprise")
	flags.Int64Var(&limits.PerDay, "per-day", 0, "requests a day, on plan enterprise")
}

func (f *newKeyFlags) newKey(now time.Time) (animalstore.NewKey, error) {
	expiresAt, err := parseExpiry(f.expires, now)
	if err != nil {
		return animalstore.NewKey{}, err
	}
	permissions, err := animalstore.ParsePermissions(f.permissions)
	if err != nil {
		return animalstore.NewKey{}, err
	}
	env, err := animalstore.ParseEnvironment(f.environment)
	if err != nil {
		return animalstore.NewKey{}, err
	}
	k := animalstore.NewKey{
		Name: f.name, Plan: animalstore.Plan(f.plan), Limits: f.limits,
		Permissions: permissions, Environment: env, ExpiresAt: expiresAt,
	}
	return k, k.Validate()
}

func keysCreateCommand(at *keysPlace) *cobra.Command {
	var f newKeyFlags
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Make a key and print it",
		Long: `Make a key and print it, alone, on standard output. It is shown this once: the
database keeps only its hash. A server makes keys for its own deployment.`,
		Example: `  animalstore keys create --name shop --plan pro
  animalstore keys create --name reports --permissions read --expires 90d
  animalstore keys create --name big --plan enterprise --per-minute 5000 --per-day 1000000`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			k, err := f.newKey(time.Now())
			if err != nil {
				return err
			}
			return at.do(cmd, false, func(ring keyRing, p *printer) error {
				if _, remote := ring.(serverKeys); remote && given(cmd, "environment") {
					return usageError{errors.New("--environment is for the database: a server makes keys for its own deployment")}
				}
				key, secret, err := ring.create(cmd.Context(), k)
				if err != nil {
					return err
				}
				p.note("Made %s Keep it: it is not shown again.", inShort(key))
				return printSecret(p, key.ID, secret)
			})
		},
	}
	f.register(cmd)
	return cmd
}

func keysImportCommand(at *keysPlace) *cobra.Command {
	var f newKeyFlags
	cmd := &cobra.Command{
		Use:   "import",
		Short: "Take over a key that was made elsewhere",
		Long: `Take over a key that was made elsewhere, read from standard input: 20 to 200
visible ASCII characters. It is not a flag, because arguments can be read by
other users of the machine. This works on the database only: no secret of yours
is sent over HTTP.`,
		Example: "  animalstore keys import --name legacy --plan pro < key.txt",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if given(cmd, "url") {
				return usageError{errors.New("keys are imported straight into the database: use --database, on the server's machine")}
			}
			k, err := f.newKey(time.Now())
			if err != nil {
				return err
			}
			input, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), 4096))
			if err != nil {
				return fmt.Errorf("read the key from standard input: %w", err)
			}
			secret := strings.TrimRight(string(input), "\r\n")
			if err := keys.ValidateForeign(secret, k.Environment); err != nil {
				return err
			}
			return withDatabase(cmd.Context(), at.database, false, func(store db.DB) error {
				key, err := databaseKeys{store}.add(cmd.Context(), k, secret)
				if err != nil {
					return err
				}
				newPrinter(cmd, false).note("Imported %s", inShort(key))
				return nil
			})
		},
	}
	f.register(cmd)
	return cmd
}

// inShort is a key in a sentence.
func inShort(k animalstore.Key) string {
	return fmt.Sprintf("key %d (%s): plan %s, %d requests a minute, %d a day; %s; %s.",
		k.ID, visible(k.Name), k.Plan, k.Limits.PerMinute, k.Limits.PerDay, k.Permissions, k.Environment)
}

// printSecret puts a secret, alone, on standard output.
func printSecret(p *printer, id int64, secret string) error {
	if _, err := fmt.Fprintln(p.out, secret); err != nil {
		return fmt.Errorf("the secret of key %d could not be printed and is lost: %w. Give the key another with \"animalstore keys rotate %d\"", id, err, id)
	}
	return nil
}

// withDatabase opens the database beside a server that may be using it.
func withDatabase(ctx context.Context, url string, mustExist bool, f func(db.DB) error) error {
	store, err := openDatabase(ctx, url, sqlite.Options{
		MustExist: mustExist,
		Fatal:     exitOnDamage(os.Stderr),
	})
	if err != nil {
		return err
	}
	return errors.Join(f(store), store.Close())
}

// exitOnDamage is what a command does when the database can't be trusted any
// more, as after a failed write to disk.
func exitOnDamage(stderr io.Writer) func(error) {
	return func(err error) {
		fmt.Fprintln(stderr, "animalstore: the database can't be trusted any more:", err)
		os.Exit(exitError)
	}
}

// parseExpiry reads a span and returns when it is over; never, if it is empty.
func parseExpiry(s string, now time.Time) (animalstore.Time, error) {
	if s == "" {
		return animalstore.Time{}, nil
	}
	span, err := parseSpan(s)
	if err != nil || span <= 0 {
		return animalstore.Time{}, usageError{fmt.Errorf("--expires must be a span such as 90d, 12h or 30m, not %q", s)}
	}
	return animalstore.At(now.Add(span)), nil
}

// parseSpan reads a duration, which unlike Go's may be in days.
func parseSpan(s string) (time.Duration, error) {
	days, ok := strings.CutSuffix(s, "d")
	if !ok {
		return time.ParseDuration(s)
	}
	n, err := strconv.Atoi(days)
	if err != nil || n < 0 || n > 100*366 {
		return 0, errors.New("not a number of days")
	}
	return time.Duration(n) * 24 * time.Hour, nil
}
