package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/db/sqlite"
	"animalstore/internal/keys"

	"github.com/spf13/cobra"
)

func keysCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "Make, list and revoke API keys",
		Long: `Make, list and revoke API keys, straight in the database. All of it works
while a server runs on the same database and takes effect there within a second.`,
		DisableFlagsInUseLine: true,
		Args:                  cobra.ArbitraryArgs,
		RunE:                  onlySubcommands,
	}
	database := cmd.PersistentFlags().String("database", "sqlite:animalstore.db", databaseUsage)
	cmd.AddCommand(keysCreateCommand(database), keysListCommand(database), keysRevokeCommand(database))
	return cmd
}

func keysCreateCommand(database *string) *cobra.Command {
	var name, plan, permissions, expires, environment string
	var limits animalstore.Limits
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
			now := time.Now()
			expiresAt, err := parseExpiry(expires, now)
			if err != nil {
				return err
			}
			perms, err := animalstore.ParsePermissions(permissions)
			if err != nil {
				return err
			}
			env, err := animalstore.ParseEnvironment(environment)
			if err != nil {
				return err
			}
			k := animalstore.NewKey{
				Name: name, Plan: animalstore.Plan(plan), Limits: limits,
				Permissions: perms, Environment: env, ExpiresAt: expiresAt,
			}
			if err := k.Validate(); err != nil {
				return err
			}
			return withDatabase(cmd.Context(), *database, false, func(store db.DB) error {
				secret := keys.Mint(env)
				key, err := store.CreateKey(cmd.Context(), k, keys.Hash(secret), animalstore.At(now))
				if err != nil {
					return fmt.Errorf("make the key: %w", err)
				}
				fmt.Fprintf(cmd.ErrOrStderr(), "Made key %d (%s): plan %s, %d requests a minute, %d a day; %s; %s. Keep it: it is not shown again.\n",
					key.ID, key.Name, key.Plan, key.Limits.PerMinute, key.Limits.PerDay, key.Permissions, key.Environment)
				_, err = fmt.Fprintln(cmd.OutOrStdout(), secret)
				return err
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&name, "name", "", "whose key it is (required)")
	flags.StringVar(&plan, "plan", "free", "free, pro, business or enterprise")
	flags.Int64Var(&limits.PerMinute, "per-minute", 0, "requests a minute, on plan enterprise")
	flags.Int64Var(&limits.PerDay, "per-day", 0, "requests a day, on plan enterprise")
	flags.StringVar(&permissions, "permissions", "read,write", "comma-separated: read, write, admin")
	flags.StringVar(&expires, "expires", "", "how long the key works, such as 90d, 12h or 30m (default for ever)")
	flags.StringVar(&environment, "environment", "production", "deployment it opens: production or staging")
	return cmd
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
				all, err := store.Keys(cmd.Context())
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

func keysRevokeCommand(database *string) *cobra.Command {
	return &cobra.Command{
		Use:     "revoke ID",
		Short:   "Withdraw a key for good",
		Example: "  animalstore keys revoke 2",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError{errors.New(`say which key by its id: "animalstore keys list" shows them`)}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil {
				return usageError{fmt.Errorf(`%q is no id: "animalstore keys list" shows the ids`, args[0])}
			}
			return withDatabase(cmd.Context(), *database, true, func(store db.DB) error {
				key, err := store.RevokeKey(cmd.Context(), id, animalstore.At(time.Now()))
				if errors.Is(err, db.ErrNotFound) {
					return fmt.Errorf(`key %d: %w. "animalstore keys list" shows the keys`, id, err)
				}
				if err != nil {
					return fmt.Errorf("revoke key %d: %w", id, err)
				}
				fmt.Fprintf(cmd.ErrOrStderr(), "Key %d (%s) is revoked since %s. A running server refuses it within a second.\n", key.ID, key.Name, key.RevokedAt)
				return nil
			})
		},
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

// parseExpiry reads a span such as 90d or 12h and returns when it is over.
func parseExpiry(s string, now time.Time) (animalstore.Time, error) {
	if s == "" {
		return animalstore.Time{}, nil
	}
	var span time.Duration
	var err error
	if days, ok := strings.CutSuffix(s, "d"); ok {
		var n int
		n, err = strconv.Atoi(days)
		if n > 100*366 {
			err = strconv.ErrRange
		}
		span = time.Duration(n) * 24 * time.Hour
	} else {
		span, err = time.ParseDuration(s)
	}
	if err != nil || span <= 0 {
		return animalstore.Time{}, usageError{fmt.Errorf("--expires must be a span such as 90d, 12h or 30m, not %q", s)}
	}
	return animalstore.At(now.Add(span)), nil
}

func writeKeyTable(w io.Writer, all []animalstore.Key, now time.Time) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "ID\tNAME\tPLAN\tPER MINUTE\tPER DAY\tPERMISSIONS\tENVIRONMENT\tCREATED\tEXPIRES\tSTATE")
	for _, k := range all {
		expires := "never"
		if !k.ExpiresAt.IsZero() {
			expires = k.ExpiresAt.Format(time.DateTime)
		}
		state := "live"
		switch {
		case !k.RevokedAt.IsZero():
			state = "revoked"
		case !k.Live(now):
			state = "expired"
		}
		fmt.Fprintf(tw, "%d\t%s\t%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\n", k.ID, k.Name, k.Plan, k.Limits.PerMinute, k.Limits.PerDay,
			k.Permissions, k.Environment, k.CreatedAt.Format(time.DateTime), expires, state)
	}
	return tw.Flush()
}

func writeIndented(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
