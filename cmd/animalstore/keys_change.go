package main

import (
	"errors"
	"fmt"
	"time"

	"animalstore"

	"github.com/spf13/cobra"
)

func keysRevokeCommand(at *keysPlace) *cobra.Command {
	return &cobra.Command{
		Use:     "revoke ID",
		Short:   "Withdraw a key for good",
		Example: "  animalstore keys revoke 2",
		Args:    oneID("key", "keys"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return at.doWithKey(cmd, false, args[0], func(ring keyRing, p *printer, id int64) error {
				key, err := ring.revoke(cmd.Context(), id)
				if err != nil {
					return err
				}
				p.note("%s is revoked since %s. A running server refuses it within a second.", named(key), key.RevokedAt)
				return nil
			})
		},
	}
}

// named is a key at the beginning of a sentence.
func named(k animalstore.Key) string {
	if k.Name == "" {
		return fmt.Sprintf("Key %d", k.ID)
	}
	return fmt.Sprintf("Key %d (%s)", k.ID, visible(k.Name))
}

func keysUnbanCommand(at *keysPlace) *cobra.Command {
	return &cobra.Command{
		Use:   "unban ID",
		Short: "Lift the ban of a key",
		Long: `Lift the ban of a key that kept sending after it was told to wait. Its limits
stay as they are, and the next ban, if it comes within a day, is longer still.`,
		Example: "  animalstore keys unban 2",
		Args:    oneID("key", "keys"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return at.doWithKey(cmd, false, args[0], func(ring keyRing, p *printer, id int64) error {
				key, err := ring.unban(cmd.Context(), id)
				if err != nil {
					return err
				}
				p.note("%s is not banned, or no longer. A running server follows within a second.", named(key))
				return nil
			})
		},
	}
}

func keysSetPlanCommand(at *keysPlace) *cobra.Command {
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
				return usageError{errors.New("say which plan with --plan: " + alternatives(names(animalstore.Plans)))}
			}
			if _, err := animalstore.Plan(plan).LimitsFor(custom); err != nil {
				return err
			}
			return at.doWithKey(cmd, false, args[0], func(ring keyRing, p *printer, id int64) error {
				key, err := ring.setPlan(cmd.Context(), id, animalstore.Plan(plan), custom)
				if err != nil {
					return err
				}
				p.note("%s is on plan %s: %d requests a minute, %d a day. A running server follows within a second.",
					named(key), key.Plan, key.Limits.PerMinute, key.Limits.PerDay)
				return nil
			})
		},
	}
	registerPlan(cmd, "", &plan, &custom)
	return cmd
}

func keysRotateCommand(at *keysPlace) *cobra.Command {
	var graceText string
	cmd := &cobra.Command{
		Use:   "rotate ID",
		Short: "Give a key a new secret and print it",
		Long: `Give a key a new secret and print it, alone, on standard output. The key keeps
its id, its plan and its counts. The old secret works on for a grace period.`,
		Example: `  animalstore keys rotate 2
  animalstore keys rotate 2 --grace 0s`,
		Args: oneID("key", "keys"),
		RunE: func(cmd *cobra.Command, args []string) error {
			grace, err := parseSpan(graceText)
			if err != nil || grace < 0 {
				return usageError{fmt.Errorf("--grace must be a span such as 7d, 12h or 0s, not %q", graceText)}
			}
			return at.doWithKey(cmd, false, args[0], func(ring keyRing, p *printer, id int64) error {
				key, secret, err := ring.rotate(cmd.Context(), id, grace)
				if err != nil {
					return err
				}
				old := "works until " + animalstore.At(time.Now().Add(grace)).String()
				if grace == 0 {
					old = "does not work any more"
				}
				p.note("%s has a new secret; the old one %s. Keep the new one: it is not shown again.", named(key), old)
				return printSecret(p, key.ID, secret)
			})
		},
	}
	cmd.Flags().StringVar(&graceText, "grace", "24h", "how long the old secret still works, such as 7d, 12h or 0s")
	return cmd
}
