package main

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/keys"

	"github.com/spf13/cobra"
)

func keysRevokeCommand(database *string) *cobra.Command {
	return &cobra.Command{
		Use:     "revoke ID",
		Short:   "Withdraw a key for good",
		Example: "  animalstore keys revoke 2",
		Args:    oneKeyID,
		RunE: func(cmd *cobra.Command, args []string) error {
			now := animalstore.At(time.Now())
			return changeKey(cmd, *database, args[0],
				func(k *animalstore.Key) error { k.Revoke(now); return nil },
				func(k animalstore.Key) string {
					return fmt.Sprintf("is revoked since %s. A running server refuses it within a second.", k.RevokedAt)
				})
		},
	}
}

func keysUnbanCommand(database *string) *cobra.Command {
	return &cobra.Command{
		Use:   "unban ID",
		Short: "Lift the ban of a key",
		Long: `Lift the ban of a key that kept sending after it was told to wait. Its limits
stay as they are, and the next ban, if it comes within a day, is longer still.`,
		Example: "  animalstore keys unban 2",
		Args:    oneKeyID,
		RunE: func(cmd *cobra.Command, args []string) error {
			now := animalstore.At(time.Now())
			return changeKey(cmd, *database, args[0],
				func(k *animalstore.Key) error { k.UnbannedAt = now; return nil },
				func(animalstore.Key) string {
					return "is not banned, or no longer. A running server follows within a second."
				})
		},
	}
}

func keysSetPlanCommand(database *string) *cobra.Command {
	var plan string
	var limits animalstore.Limits
	cmd := &cobra.Command{
		Use:   "set-plan ID",
		Short: "Put a key on another plan",
		Example: `  animalstore keys set-plan 2 --plan business
  animalstore keys set-plan 2 --plan enterprise --per-minute 5000 --per-day 1000000`,
		Args: oneKeyID,
		RunE: func(cmd *cobra.Command, args []string) error {
			if plan == "" {
				return usageError{errors.New("say which plan with --plan: free, pro, business or enterprise")}
			}
			return changeKey(cmd, *database, args[0],
				func(k *animalstore.Key) error {
					if err := k.CheckChangeable(); err != nil {
						return err
					}
					return k.SetPlan(animalstore.Plan(plan), limits)
				},
				func(k animalstore.Key) string {
					return fmt.Sprintf("is on plan %s: %d requests a minute, %d a day. A running server follows within a second.", k.Plan, k.Limits.PerMinute, k.Limits.PerDay)
				})
		},
	}
	registerPlan(cmd, "", &plan, &limits)
	return cmd
}

func keysRotateCommand(database *string) *cobra.Command {
	var graceText string
	cmd := &cobra.Command{
		Use:   "rotate ID",
		Short: "Give a key a new secret and print it",
		Long: `Give a key a new secret and print it, alone, on standard output. The key keeps
its id, its plan and its counts. The old secret works on for a grace period.`,
		Example: `  animalstore keys rotate 2
  animalstore keys rotate 2 --grace 0s`,
		Args: oneKeyID,
		RunE: func(cmd *cobra.Command, args []string) error {
			grace, err := parseSpan(graceText)
			if err != nil || grace < 0 {
				return usageError{fmt.Errorf("--grace must be a span such as 7d, 12h or 0s, not %q", graceText)}
			}
			return withKeyID(cmd, *database, args[0], func(store db.DB, id int64) error {
				key, err := store.Key(cmd.Context(), id)
				if err != nil {
					return err
				}
				secret := keys.Mint(key.Environment)
				now := time.Now()
				until := animalstore.At(now.Add(grace))
				if _, err := store.RotateKey(cmd.Context(), id, keys.Hash(secret), animalstore.At(now), until); err != nil {
					return err
				}
				old := "works until " + until.String()
				if grace == 0 {
					old = "does not work any more"
				}
				fmt.Fprintf(cmd.ErrOrStderr(), "Key %d (%s) has a new secret; the old one %s. Keep the new one: it is not shown again.\n", key.ID, key.Name, old)
				return printSecret(cmd, key.ID, secret)
			})
		},
	}
	cmd.Flags().StringVar(&graceText, "grace", "24h", "how long the old secret still works, such as 7d, 12h or 0s")
	return cmd
}

func oneKeyID(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usageError{errors.New(`say which key by its id: "animalstore keys list" shows them`)}
	}
	return nil
}

// changeKey alters the key with the id in arg and says what became of it.
func changeKey(cmd *cobra.Command, database, arg string, change func(*animalstore.Key) error, done func(animalstore.Key) string) error {
	return withKeyID(cmd, database, arg, func(store db.DB, id int64) error {
		// An operator at the shell can always make another admin key, so the
		// last one needs no protection here.
		key, err := store.UpdateKey(cmd.Context(), id, animalstore.At(time.Now()), func(k *animalstore.Key, _ bool) error { return change(k) })
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "Key %d (%s) %s\n", key.ID, key.Name, done(key))
		return nil
	})
}

// withKeyID opens the database for work on the key with the id in arg.
func withKeyID(cmd *cobra.Command, database, arg string, f func(store db.DB, id int64) error) error {
	id, err := strconv.ParseInt(arg, 10, 64)
	if err != nil {
		return usageError{fmt.Errorf(`%q is no id: "animalstore keys list" shows the ids`, arg)}
	}
	return withDatabase(cmd.Context(), database, true, func(store db.DB) error {
		err := f(store, id)
		if errors.Is(err, db.ErrNotFound) {
			return fmt.Errorf(`key %d: %w. "animalstore keys list" shows the keys`, id, err)
		}
		return err
	})
}
