package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"animalstore"
	"animalstore/client"
	"animalstore/internal/cli"
	"animalstore/internal/db"
	"animalstore/internal/keys"
	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
)

func keysCommand() *cobra.Command {
	var at keyLocation
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "Create, show, change and revoke API keys",
		Long: `Create, show, change and revoke API keys: directly in the database, or over HTTP
with a key that has the permission admin.

These commands use --database, unless --url is given or ANIMALSTORE_URL is set.
A flag takes precedence over the environment. In the database they work while a
server is running, and take effect within a second.

Over HTTP, your own key is read from the environment variable
` + keyVariable + `, and never from a flag, because other users of the
machine can read arguments.`,
		Example: `  animalstore keys create --name shop --plan pro
  animalstore keys list
  animalstore keys list --url https://pets.example`,
	}
	at.database.register(cmd.PersistentFlags())
	at.server.register(cmd, cmd.PersistentFlags())
	return cli.Group(cmd, keysCreateCommand(&at), keysImportCommand(&at),
		keysListCommand(&at), keysShowCommand(&at), keysUsageCommand(&at),
		keysSetCommand(&at), keysRotateCommand(&at), keysRevokeCommand(&at), keysUnbanCommand(&at))
}

// newKeyFlags are the flags that create and import share.
type newKeyFlags struct {
	planFlags
	name, permissions, expires, environment string
}

func (f *newKeyFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.name, "name", "", "a name for the key, such as its owner (required)")
	flags.StringVar(&f.permissions, "permissions", "read,write", "comma-separated: read, write, admin")
	cli.CompleteFlag(cmd, "permissions", cli.CompleteList((animalstore.Read | animalstore.Write | animalstore.Admin).Names()))
	flags.StringVar(&f.expires, "expires", "", "how long the key works, such as 90d, 12h or 30m (default forever)")
	flags.StringVar(&f.environment, "environment", "production", "deployment the key is for: production or staging")
	cli.CompleteFlag(cmd, "environment", cli.FixedValues(environments))
	f.planFlags.register(cmd, "free")
	flags.BoolP("yes", "y", false, "create a new store without asking if there is none")
}

// planFlags are the flags of a key's plan.
type planFlags struct {
	plan   string
	limits animalstore.Limits
}

func (f *planFlags) register(cmd *cobra.Command, defaultPlan string) {
	flags := cmd.Flags()
	flags.StringVar(&f.plan, "plan", defaultPlan, animalstore.JoinOr(animalstore.Plans))
	cli.CompleteFlag(cmd, "plan", cli.FixedValues(animalstore.Plans))
	flags.Int64Var(&f.limits.PerMinute, "per-minute", 0, "requests a minute, on plan enterprise")
	flags.Int64Var(&f.limits.PerDay, "per-day", 0, "requests a day, on plan enterprise")
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

func keysCreateCommand(at *keyLocation) *cobra.Command {
	var f newKeyFlags
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create a key and print it",
		Long: `Create a key and print it to standard output, with nothing else. It is shown
only once: the database stores only its hash. A server creates keys for its own
deployment. If there is no store yet, you are asked before one is created.`,
		Example: `  animalstore keys create --name shop --plan pro
  animalstore keys create --name reports --permissions read --expires 90d
  animalstore keys create --name big --plan enterprise --per-minute 5000 --per-day 1000000`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			k, err := f.newKey(time.Now())
			if err != nil {
				return err
			}
			return at.do(cmd, func(store keyStore, p *terminal.Printer) error {
				if _, remote := store.(serverKeys); remote && cli.Given(cmd, "environment") {
					return cli.Usagef("--environment works with --database only: a server creates keys for its own deployment")
				}
				key, secret, err := store.Create(cmd.Context(), k)
				if err != nil {
					return err
				}
				p.Note("Created %s Store it safely: it isn't shown again.", keySentence(key))
				return printSecret(p, "key", key.ID, secret, client.KeyWithSecret{Key: key, Secret: secret})
			})
		},
	}
	f.register(cmd)
	jsonFlag(cmd)
	return cmd
}

func keysImportCommand(at *keyLocation) *cobra.Command {
	var f newKeyFlags
	cmd := &cobra.Command{
		Use:   "import",
		Short: "Import a key that was created elsewhere",
		Long: `Import a key that was created elsewhere, from standard input: 20 to 200 visible
ASCII characters. It isn't a flag, because other users of the machine can read
arguments. This works on the database only: your secret isn't sent over HTTP.`,
		Example: "  animalstore keys import --name legacy --plan pro < key.txt",
		Args:    cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cli.Given(cmd, "url") {
				return cli.Usagef("keys are imported directly into the database: use --database on the server's machine")
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
			return at.withDatabase(cmd, func(store db.DB) error {
				key, err := databaseKeys{store}.Import(cmd.Context(), k, secret)
				if err != nil {
					return err
				}
				return newPrinter(cmd).Result(key, "Imported %s", keySentence(key))
			})
		},
	}
	f.register(cmd)
	jsonFlag(cmd)
	return cmd
}

// parseExpiry returns when a duration from now ends; never if it is empty.
func parseExpiry(s string, now time.Time) (animalstore.Time, error) {
	if s == "" {
		return animalstore.Time{}, nil
	}
	validity, err := terminal.ParseDuration(s)
	if err != nil || validity <= 0 {
		return animalstore.Time{}, cli.Usagef("--expires must be a duration such as 90d, 12h or 30m, not %q", s)
	}
	return animalstore.At(now.Add(validity)), nil
}
