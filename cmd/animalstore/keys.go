package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/db/sqlite"
	"animalstore/internal/keys"
	"animalstore/internal/ratelimit"

	"github.com/spf13/cobra"
)

func keysCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "Make, show, change and revoke API keys",
		Long: `Make, show, change and revoke API keys, straight in the database. All of it
works while a server runs on the same database, and takes effect there within a
second.`,
		Example: `  animalstore keys create --name shop --plan pro
  animalstore keys list`,
		DisableFlagsInUseLine: true,
		Args:                  cobra.ArbitraryArgs,
		RunE:                  onlySubcommands,
	}
	database := cmd.PersistentFlags().String("database", "sqlite:animalstore.db", databaseUsage)
	cmd.AddCommand(keysCreateCommand(database), keysImportCommand(database),
		keysListCommand(database), keysShowCommand(database), keysUsageCommand(database),
		keysRotateCommand(database), keysSetPlanCommand(database), keysRevokeCommand(database), keysUnbanCommand(database))
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
	flags.StringVar(plan, "plan", usual, "free, pro, business or enterprise")
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

func keysCreateCommand(database *string) *cobra.Command {
	var f newKeyFlags
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Make a key and print it",
		Long: `Make a key and print it, alone, on standard output. It is shown this once: the
database keeps only its hash.`,
		Example: `  animalstore keys create --name shop --plan pro
  animalstore keys create --name reports --plan free --permissions read --expires 90d
  animalstore keys create --name big --plan enterprise --per-minute 5000 --per-day 1000000`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			k, err := f.newKey(time.Now())
			if err != nil {
				return err
			}
			secret := keys.Mint(k.Environment)
			id, err := storeKey(cmd, *database, k, secret, "Made", " Keep it: it is not shown again.")
			if err != nil {
				return err
			}
			return printSecret(cmd, id, secret)
		},
	}
	f.register(cmd)
	return cmd
}

func keysImportCommand(database *string) *cobra.Command {
	var f newKeyFlags
	cmd := &cobra.Command{
		Use:   "import",
		Short: "Take over a key that was made elsewhere",
		Long: `Take over a key that was made elsewhere, read from standard input: 20 to 200
visible ASCII characters. It is not a flag, because arguments can be read by
other users of the machine.`,
		Example: "  animalstore keys import --name legacy --plan pro < key.txt",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
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
			_, err = storeKey(cmd, *database, k, secret, "Imported", "")
			return err
		},
	}
	f.register(cmd)
	return cmd
}

func storeKey(cmd *cobra.Command, database string, k animalstore.NewKey, secret, did, hint string) (id int64, err error) {
	err = withDatabase(cmd.Context(), database, false, func(store db.DB) error {
		key, err := store.CreateKey(cmd.Context(), k, keys.Hash(secret), animalstore.At(time.Now()))
		if errors.Is(err, db.ErrExists) {
			return errors.New("this key is in the database already")
		}
		if err != nil {
			return fmt.Errorf("store the key: %w", err)
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "%s key %d (%s): plan %s, %d requests a minute, %d a day; %s; %s.%s\n",
			did, key.ID, key.Name, key.Plan, key.Limits.PerMinute, key.Limits.PerDay, key.Permissions, key.Environment, hint)
		id = key.ID
		return nil
	})
	return id, err
}

// printSecret puts a secret, alone, on standard output.
func printSecret(cmd *cobra.Command, id int64, secret string) error {
	if _, err := fmt.Fprintln(cmd.OutOrStdout(), secret); err != nil {
		return fmt.Errorf("the secret of key %d could not be printed and is lost: %w. Give the key another with \"animalstore keys rotate %d\"", id, err, id)
	}
	return nil
}

func keysListCommand(database *string) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List all keys, without their secrets",
		Example: "  animalstore keys list\n  animalstore keys list --json",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withDatabase(cmd.Context(), *database, true, func(store db.DB) error {
				all, err := allKeys(cmd.Context(), store)
				if err != nil {
					return fmt.Errorf("list the keys: %w", err)
				}
				if asJSON {
					return writeIndented(cmd.OutOrStdout(), all)
				}
				return writeKeyTable(cmd.OutOrStdout(), all, time.Now())
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func keysShowCommand(database *string) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "show ID",
		Short:   "Show one key, without its secret",
		Example: "  animalstore keys show 2",
		Args:    oneKeyID,
		RunE: func(cmd *cobra.Command, args []string) error {
			return withKeyID(cmd, *database, args[0], func(store db.DB, id int64) error {
				key, err := store.Key(cmd.Context(), id)
				if err != nil {
					return err
				}
				state, err := store.LimitState(cmd.Context(), id)
				if err != nil {
					return err
				}
				now := time.Now()
				limits := ratelimit.StatusOf(state, &key, now)
				if asJSON {
					return writeIndented(cmd.OutOrStdout(), struct {
						animalstore.Key
						LeftThisMinute int64            `json:"leftThisMinute"`
						LeftToday      int64            `json:"leftToday"`
						BannedUntil    animalstore.Time `json:"bannedUntil"`
					}{key, limits.Minute.Remaining, limits.Day.Remaining, limits.BannedUntil})
				}
				return writeKey(cmd.OutOrStdout(), key, limits, now)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// allKeys are the keys of a database, oldest first.
func allKeys(ctx context.Context, store db.DB) ([]animalstore.Key, error) {
	all := []animalstore.Key{}
	q := db.KeyQuery{Limit: 1000}
	for {
		page, err := store.Keys(ctx, q)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if len(page) < q.Limit {
			slices.Reverse(all)
			return all, nil
		}
		q.Before = page[len(page)-1].ID
	}
}

// withDatabase opens the database beside a server that may be using it.
func withDatabase(ctx context.Context, url string, mustExist bool, f func(db.DB) error) error {
	store, err := openDatabase(ctx, url, sqlite.Options{
		MustExist: mustExist,
		Fatal: func(err error) {
			fmt.Fprintln(os.Stderr, "animalstore: the database cannot be trusted any more:", err)
			os.Exit(exitError)
		},
	})
	if err != nil {
		return err
	}
	return errors.Join(f(store), store.Close())
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

func writeKeyTable(w io.Writer, all []animalstore.Key, now time.Time) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "ID\tNAME\tPLAN\tPER MINUTE\tPER DAY\tPERMISSIONS\tENVIRONMENT\tLAST USED\tEXPIRES\tSTATE")
	for _, k := range all {
		fmt.Fprintf(tw, "%d\t%s\t%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\n", k.ID, k.Name, k.Plan, k.Limits.PerMinute, k.Limits.PerDay,
			k.Permissions, k.Environment, when(k.LastUsedAt), when(k.ExpiresAt), keyState(&k, now))
	}
	return tw.Flush()
}

func writeKey(w io.Writer, k animalstore.Key, limits ratelimit.Status, now time.Time) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	banned := "no"
	if !limits.BannedUntil.IsZero() {
		banned = "until " + when(limits.BannedUntil)
	}
	for _, row := range [][2]string{
		{"ID", fmt.Sprint(k.ID)},
		{"Name", k.Name},
		{"State", keyState(&k, now)},
		{"Plan", string(k.Plan)},
		{"Left this minute", fmt.Sprintf("%d of %d", limits.Minute.Remaining, limits.Minute.Limit)},
		{"Left today", fmt.Sprintf("%d of %d", limits.Day.Remaining, limits.Day.Limit)},
		{"Permissions", k.Permissions.String()},
		{"Environment", string(k.Environment)},
		{"Created", when(k.CreatedAt)},
		{"Last used", when(k.LastUsedAt)},
		{"Expires", when(k.ExpiresAt)},
		{"Revoked", when(k.RevokedAt)},
		{"Banned", banned},
	} {
		fmt.Fprintf(tw, "%s\t%s\n", row[0], row[1])
	}
	return tw.Flush()
}

func keyState(k *animalstore.Key, now time.Time) string {
	switch {
	case !k.RevokedAt.IsZero():
		return "revoked"
	case !k.Live(now):
		return "expired"
	}
	return "live"
}

// when is a time as a person reads it, in UTC.
func when(t animalstore.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.Format(time.DateTime)
}

func writeIndented(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
