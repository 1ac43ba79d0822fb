package main

import (
	"fmt"
	"io"
	"iter"
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

Over HTTP, set your own key in ` + keyVariable + `. There is no flag for
it, because other users of the machine can see flags.`,
		Example: `  animalstore keys create --name shop --plan pro
  animalstore keys list
  animalstore keys list --url https://pets.example`,
	}
	at.database.register(cmd.PersistentFlags())
	at.server.register(cmd, cmd.PersistentFlags())
	return cli.Group(cmd, keysCreateCommand(&at), keysImportCommand(&at),
		keysListCommand(&at), keysShowCommand(&at), keysUsageCommand(&at),
		keysSetCommand(&at), keysSuspendCommand(&at, true), keysSuspendCommand(&at, false),
		keysRotateCommand(&at), keysRevokeCommand(&at), keysUnbanCommand(&at))
}

// keyFlags are the flags that describe a key, to create or to change it.
type keyFlags struct {
	name, permissions, networks, expires string
	plan                                 animalstore.Plan
	limits                               animalstore.Limits
}

// register adds the flags. Their defaults are the values that f has.
func (f *keyFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.name, "name", "", "name of the key, such as its owner")
	flags.StringVar(&f.permissions, "permissions", f.permissions, "comma-separated: "+animalstore.JoinNames(animalstore.AllPermissions.Names()))
	cli.CompleteFlag(cmd, "permissions", cli.CompleteList(animalstore.AllPermissions.Names()))
	flags.StringVar(&f.networks, "networks", f.networks, "comma-separated networks that the key works from, such as 203.0.113.0/24, or "+anywhere)
	cli.CompleteFlag(cmd, "networks", cli.FixedValues([]string{anywhere}))
	flags.StringVar(&f.expires, "expires", f.expires, "how long the key works from now, such as 90d or 12h, or never to keep it")
	cli.RegisterOneOf(cmd, &f.plan, animalstore.Plans, "plan", animalstore.JoinOr(animalstore.Plans))
	flags.Int64Var(&f.limits.PerMinute, "per-minute", 0, "requests per minute, on plan enterprise")
	flags.Int64Var(&f.limits.PerDay, "per-day", 0, "requests per day, on plan enterprise")
}

// anywhere is the value of --networks for a key that works from all addresses.
const anywhere = "anywhere"

// networkList reads --networks.
func (f *keyFlags) networkList() (animalstore.Networks, error) {
	if f.networks == anywhere {
		return "", nil
	}
	return animalstore.NewNetworks(strings.Split(f.networks, ","))
}

// expiry returns when the key expires.
func (f *keyFlags) expiry(now time.Time) (animalstore.Time, error) {
	if f.expires == "never" {
		return animalstore.Time{}, nil
	}
	validity, err := cli.ParseDuration(f.expires)
	if err != nil || validity <= 0 {
		return animalstore.Time{}, cli.Usagef("--expires must be a duration such as 90d, 12h or 30m, or never, not %q", f.expires)
	}
	return animalstore.At(now.Add(validity)), nil
}

// newKeyFlags are the flags that create and import share.
type newKeyFlags struct {
	keyFlags
	environment animalstore.Environment
}

func (f *newKeyFlags) register(cmd *cobra.Command) {
	f.plan, f.permissions, f.networks, f.expires = "free", "read,write", anywhere, "never"
	f.keyFlags.register(cmd)
	cmd.Flag("name").Usage += " (required)"
	f.environment = animalstore.Production
	cli.RegisterOneOf(cmd, &f.environment, environments, "environment", "deployment the key is for: production or staging")
	cmd.Flags().BoolP("yes", "y", false, "create a new store without asking if there is none")
}

func (f *newKeyFlags) newKey(now time.Time) (animalstore.NewKey, error) {
	expiresAt, err := f.expiry(now)
	if err != nil {
		return animalstore.NewKey{}, err
	}
	permissions, err := animalstore.ParsePermissions(f.permissions)
	if err != nil {
		return animalstore.NewKey{}, err
	}
	networks, err := f.networkList()
	if err != nil {
		return animalstore.NewKey{}, err
	}
	k := animalstore.NewKey{
		Name: f.name, Plan: f.plan, Limits: f.limits,
		Permissions: permissions, Networks: networks, Environment: f.environment, ExpiresAt: expiresAt,
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
deployment. If there is no store yet, you are asked before one is created.

The permissions pets:read and pets:write are for pets, photos, categories and
the inventory, orders:read and orders:write for orders. Both :write permissions
include reading. For the whole store, read allows all reading and write all
changes; admin is for keys, webhooks and the status.`,
		Example: `  animalstore keys create --name shop --plan pro
  animalstore keys create --name reports --permissions read --expires 90d
  animalstore keys create --name website --permissions pets:read,orders:write \
      --networks 203.0.113.0/24
  animalstore keys create --name big --plan enterprise \
      --per-minute 5000 --per-day 1000000`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			k, err := f.newKey(time.Now())
			if err != nil {
				return err
			}
			return at.do(cmd, func(store keyStore, p *terminal.Printer) error {
				if _, remote := store.(serverKeys); remote && cli.Given(cmd, "environment") {
					return cli.Usagef("--environment needs --database: a server creates keys for its own environment")
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
				return cli.Usagef("keys are imported into a database: use --database on the server's machine")
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

func keysListCommand(at *keyLocation) *cobra.Command {
	var f listFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List keys, newest first, without their secrets",
		Example: `  animalstore keys list
  animalstore keys list --json`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			columns, err := chosenColumns(cmd, keyResource.columns)
			if err != nil {
				return err
			}
			return at.do(cmd, func(store keyStore, p *terminal.Printer) error {
				return keyResource.printPages(p, &f, columns, func(pageSize int) iter.Seq2[animalstore.Key, error] {
					return store.List(cmd.Context(), pageSize)
				})
			})
		},
	}
	f.register(cmd, 0)
	keyResource.registerOutput(cmd)
	return cmd
}

var keyResource = resource[animalstore.Key]{"key", "keys", keyColumns(time.Now())}

func keysShowCommand(at *keyLocation) *cobra.Command {
	return at.onKey(&cobra.Command{
		Use:   "show ID",
		Short: "Show one key, without its secret",
		Long: `Show one key, without its secret. With --database it also shows how many
requests the key has left. A server shows that only to the key itself: see
"animalstore limits".`,
		Example: `  animalstore keys show 2
  animalstore keys show 2 --json`,
	}, func(cmd *cobra.Command, store keyStore, p *terminal.Printer, id int64) error {
		key, limits, err := store.Show(cmd.Context(), id)
		if err != nil {
			return err
		}
		return printKey(p, key, limits, time.Now())
	})
}

func (f *keyFlags) patch(cmd *cobra.Command, now time.Time) (patch animalstore.KeyPatch, _ error) {
	if cmd.Flag("name").Changed {
		patch.Name = &f.name
	}
	if f.plan != "" {
		patch.Plan = &f.plan
	}
	if f.limits != (animalstore.Limits{}) {
		patch.Limits = &f.limits
	}
	if cmd.Flag("permissions").Changed {
		permissions, err := animalstore.ParsePermissions(f.permissions)
		if err != nil {
			return patch, err
		}
		patch.Permissions = &permissions
	}
	if cmd.Flag("networks").Changed {
		networks, err := f.networkList()
		if err != nil {
			return patch, err
		}
		patch.Networks = &networks
	}
	if cmd.Flag("expires").Changed {
		expiresAt, err := f.expiry(now)
		if err != nil {
			return patch, err
		}
		patch.ExpiresAt = &expiresAt
	}
	if patch == (animalstore.KeyPatch{}) {
		return patch, cli.Usagef("nothing to change: use --name, --permissions, --networks, --expires, --plan, or --per-minute and --per-day")
	}
	return patch, patch.Validate(now)
}

func keysSetCommand(at *keyLocation) *cobra.Command {
	var f keyFlags
	var patch animalstore.KeyPatch
	cmd := at.onKey(&cobra.Command{
		Use:     "set ID",
		Aliases: []string{"set-plan"},
		Short:   "Change a key's name, permissions, networks, expiry, plan or limits",
		Long: `Change a key's name, permissions, networks, expiry, plan or limits. Every plan
has fixed limits except enterprise, which needs --per-minute and --per-day. A
key that is already on enterprise keeps its limits unless you give new ones.`,
		Example: `  animalstore keys set 2 --name till --permissions read
  animalstore keys set 2 --networks 203.0.113.0/24,2001:db8::/32
  animalstore keys set 2 --networks anywhere
  animalstore keys set 2 --expires 90d
  animalstore keys set 2 --plan enterprise \
      --per-minute 5000 --per-day 1000000`,
		PreRunE: func(cmd *cobra.Command, _ []string) (err error) {
			patch, err = f.patch(cmd, time.Now())
			return err
		},
	}, func(cmd *cobra.Command, store keyStore, p *terminal.Printer, id int64) error {
		key, err := store.Update(cmd.Context(), id, patch)
		if err != nil {
			return err
		}
		expires := ""
		if !key.ExpiresAt.IsZero() {
			expires = fmt.Sprintf(" It expires at %s.", key.ExpiresAt)
		}
		return p.Result(key, "Changed %s%s A running server picks this up within a second.", keySentence(key), expires)
	})
	f.register(cmd)
	return cmd
}

// keysSuspendCommand is the command that suspends a key, or the one that resumes it.
func keysSuspendCommand(at *keyLocation, suspend bool) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "suspend ID",
		Short: "Refuse a key until it is resumed",
		Long: `Refuse a key until it is resumed with "animalstore keys resume". Its streams of
events and its sessions in the console end.`,
		Example: "  animalstore keys suspend 2",
	}
	done := "%s was suspended at %s. A running server refuses it within a second."
	if !suspend {
		cmd = &cobra.Command{
			Use:     "resume ID",
			Short:   "Let a suspended key work again",
			Example: "  animalstore keys resume 2",
		}
		done = "%s is no longer suspended. A running server accepts it within a second."
	}
	return at.onKey(cmd, func(cmd *cobra.Command, store keyStore, p *terminal.Printer, id int64) error {
		key, err := store.Update(cmd.Context(), id, animalstore.KeyPatch{Suspended: &suspend})
		switch {
		case err != nil:
			return err
		case suspend:
			return p.Result(key, done, keyTitle(key), key.SuspendedAt)
		}
		return p.Result(key, done, keyTitle(key))
	})
}

func keysRevokeCommand(at *keyLocation) *cobra.Command {
	cmd := at.onKey(&cobra.Command{
		Use:     "revoke ID",
		Aliases: append([]string{"remove"}, cli.VerbAliases["remove"]...),
		Short:   "Revoke a key permanently",
		Long: `Revoke a key permanently. It stays in the list. On a terminal, you are asked for
confirmation.`,
		Example: "  animalstore keys revoke 2 --yes",
	}, func(cmd *cobra.Command, store keyStore, p *terminal.Printer, id int64) error {
		if needsConfirmation(cmd) {
			key, _, err := store.Show(cmd.Context(), id)
			if err == nil {
				err = requireConfirmation(cmd, fmt.Sprintf("Revoke key %d (%s) permanently?", key.ID, terminal.Visible(key.Name)))
			}
			if err != nil {
				return err
			}
		}
		key, err := store.Revoke(cmd.Context(), id)
		if err != nil {
			return err
		}
		return p.Result(key, "%s was revoked at %s. A running server refuses it within a second.", keyTitle(key), key.RevokedAt)
	})
	yesFlag(cmd)
	return cmd
}

func keysUnbanCommand(at *keyLocation) *cobra.Command {
	return at.onKey(&cobra.Command{
		Use:   "unban ID",
		Short: "Lift the ban of a key",
		Long: `Lift the ban of a key that ignored its limits. The limits stay, and another ban
within a day lasts longer.`,
		Example: "  animalstore keys unban 2",
	}, func(cmd *cobra.Command, store keyStore, p *terminal.Printer, id int64) error {
		key, lifted, err := store.Unban(cmd.Context(), id)
		switch {
		case err != nil:
			return err
		case lifted:
			return p.Result(key, "Lifted the ban of key %d (%s). A running server accepts it within a second.",
				key.ID, terminal.Visible(key.Name))
		}
		return p.Result(key, "%s isn't banned.", keyTitle(key))
	})
}

func keysRotateCommand(at *keyLocation) *cobra.Command {
	grace := defaultGrace
	cmd := at.onKey(&cobra.Command{
		Use:   "rotate ID",
		Short: "Give a key a new secret and print it",
		Long: `Give a key a new secret and print it to standard output, with nothing else. The
key keeps its id, plan and usage. The old secret keeps working for a grace
period.`,
		Example: `  animalstore keys rotate 2
  animalstore keys rotate 2 --grace 0s`,
	}, func(cmd *cobra.Command, store keyStore, p *terminal.Printer, id int64) error {
		key, secret, err := store.Rotate(cmd.Context(), id, grace)
		if err != nil {
			return err
		}
		old := "works until " + animalstore.At(time.Now().Add(grace)).String()
		if grace == 0 {
			old = "no longer works"
		}
		p.Note("%s has a new secret; the old one %s. Store the new one safely: it isn't shown again.", keyTitle(key), old)
		return printSecret(p, "key", key.ID, secret, client.KeyWithSecret{Key: key, Secret: secret})
	})
	cli.RegisterDuration(cmd, &grace, "grace", "how long the old secret keeps working: a `duration` such as 7d, 12h or 0s")
	return cmd
}

// defaultGrace is how long the old secret of a key or webhook keeps working after a
// rotation.
const defaultGrace = 24 * time.Hour
