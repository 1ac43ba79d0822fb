package main

import (
	"errors"
	"fmt"
	"time"

	"animalstore"
	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
)

func keysRevokeCommand(at *keyLocation) *cobra.Command {
	return &cobra.Command{
		Use:     "revoke ID",
		Short:   "Revoke a key permanently",
		Example: "  animalstore keys revoke 2",
		Args:    oneID("key", "keys"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return at.doWithKey(cmd, false, args[0], func(store keyStore, p *terminal.Printer, id int64) error {
				key, err := store.revoke(cmd.Context(), id)
				if err != nil {
					return err
				}
				p.Note("%s was revoked at %s. A running server refuses it within a second.", keyTitle(key), key.RevokedAt)
				return nil
			})
		},
	}
}

// keyTitle is a key at the beginning of a sentence.
func keyTitle(k animalstore.Key) string {
	if k.Name == "" {
		return fmt.Sprintf("Key %d", k.ID)
	}
	return fmt.Sprintf("Key %d (%s)", k.ID, terminal.Visible(k.Name))
}

func keysUnbanCommand(at *keyLocation) *cobra.Command {
	return &cobra.Command{
		Use:   "unban ID",
		Short: "Lift the ban of a key",
		Long: `Lift the ban of a key that kept sending requests after it was told to wait. Its
limits don't change, and the next ban, if it comes within a day, is even longer.`,
		Example: "  animalstore keys unban 2",
		Args:    oneID("key", "keys"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return at.doWithKey(cmd, false, args[0], func(store keyStore, p *terminal.Printer, id int64) error {
				key, lifted, err := store.unban(cmd.Context(), id)
				switch {
				case err != nil:
					return err
				case lifted:
					p.Note("Lifted the ban of key %d (%s). A running server follows within a second.", key.ID, terminal.Visible(key.Name))
				default:
					p.Note("%s isn't banned.", keyTitle(key))
				}
				return nil
			})
		},
	}
}

func keysSetPlanCommand(at *keyLocation) *cobra.Command {
	var plan string
	var custom animalstore.Limits
	cmd := &cobra.Command{
		Use:   "set-plan ID",
		Short: "Put a key on another plan",
		Example: `  animalstore keys set-plan 2 --plan business
  animalstore keys set-plan 2 --plan enterprise --per-minute 5000 --per-day 1000000`,
		Args: oneID("key", "keys"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if plan == "" {
				return usageError{errors.New("name the plan with --plan: " + alternatives(animalstore.Plans))}
			}
			if _, err := animalstore.Plan(plan).LimitsFor(custom); err != nil {
				return err
			}
			return at.doWithKey(cmd, false, args[0], func(store keyStore, p *terminal.Printer, id int64) error {
				key, err := store.setPlan(cmd.Context(), id, animalstore.Plan(plan), custom)
				if err != nil {
					return err
				}
				p.Note("%s is on plan %s: %d requests a minute, %d a day. A running server follows within a second.",
					keyTitle(key), key.Plan, key.Limits.PerMinute, key.Limits.PerDay)
				return nil
			})
		},
	}
	registerPlan(cmd, "", &plan, &custom)
	return cmd
}

func keysRotateCommand(at *keyLocation) *cobra.Command {
	var graceText string
	cmd := &cobra.Command{
		Use:   "rotate ID",
		Short: "Give a key a new secret and print it",
		Long: `Give a key a new secret and print it to standard output, with nothing else. The
key keeps its id, plan and usage. The old secret keeps working for a grace
period.`,
		Example: `  animalstore keys rotate 2
  animalstore keys rotate 2 --grace 0s`,
		Args: oneID("key", "keys"),
		RunE: func(cmd *cobra.Command, args []string) error {
			grace, err := parseDuration(graceText)
			if err != nil || grace < 0 {
				return usageError{fmt.Errorf("--grace must be a duration such as 7d, 12h or 0s, not %q", graceText)}
			}
			return at.doWithKey(cmd, false, args[0], func(store keyStore, p *terminal.Printer, id int64) error {
				key, secret, err := store.rotate(cmd.Context(), id, grace)
				if err != nil {
					return err
				}
				old := "works until " + animalstore.At(time.Now().Add(grace)).String()
				if grace == 0 {
					old = "no longer works"
				}
				p.Note("%s has a new secret; the old one %s. Store the new one safely: it isn't shown again.", keyTitle(key), old)
				return printSecret(p, key.ID, secret)
			})
		},
	}
	cmd.Flags().StringVar(&graceText, "grace", "24h", "how long the old secret keeps working, such as 7d, 12h or 0s")
	return cmd
}
