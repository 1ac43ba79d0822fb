package main

import (
	"errors"
	"fmt"
	"time"

	"animalstore"
	"animalstore/internal/keyadmin"
	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
)

func keysRevokeCommand(at *keyLocation) *cobra.Command {
	return at.onKey(&cobra.Command{
		Use:     "revoke ID",
		Short:   "Revoke a key permanently",
		Example: "  animalstore keys revoke 2",
	}, func(cmd *cobra.Command, store keyadmin.Keys, p *terminal.Printer, id int64) error {
		key, err := store.Revoke(cmd.Context(), id)
		if err == nil {
			p.Note("%s was revoked at %s. A running server refuses it within a second.", keyTitle(key), key.RevokedAt)
		}
		return err
	})
}

// keyTitle is a key at the beginning of a sentence.
func keyTitle(k animalstore.Key) string {
	if k.Name == "" {
		return fmt.Sprintf("Key %d", k.ID)
	}
	return fmt.Sprintf("Key %d (%s)", k.ID, terminal.Visible(k.Name))
}

func keysUnbanCommand(at *keyLocation) *cobra.Command {
	return at.onKey(&cobra.Command{
		Use:   "unban ID",
		Short: "Lift the ban of a key",
		Long: `Lift the ban of a key that kept sending requests after it was told to wait. Its
limits don't change, and the next ban, if it comes within a day, is even longer.`,
		Example: "  animalstore keys unban 2",
	}, func(cmd *cobra.Command, store keyadmin.Keys, p *terminal.Printer, id int64) error {
		key, lifted, err := store.Unban(cmd.Context(), id)
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
}

func keysSetPlanCommand(at *keyLocation) *cobra.Command {
	var f planFlags
	cmd := at.onKey(&cobra.Command{
		Use:   "set-plan ID",
		Short: "Put a key on another plan",
		Example: `  animalstore keys set-plan 2 --plan business
  animalstore keys set-plan 2 --plan enterprise --per-minute 5000 --per-day 1000000`,
		PreRunE: func(*cobra.Command, []string) error {
			if f.plan == "" {
				return usageError{errors.New("name the plan with --plan: " + animalstore.JoinOr(animalstore.Plans))}
			}
			_, err := animalstore.Plan(f.plan).LimitsFor(f.limits)
			return err
		},
	}, func(cmd *cobra.Command, store keyadmin.Keys, p *terminal.Printer, id int64) error {
		key, err := store.SetPlan(cmd.Context(), id, animalstore.Plan(f.plan), f.limits)
		if err == nil {
			p.Note("%s is on plan %s: %d requests a minute, %d a day. A running server follows within a second.",
				keyTitle(key), key.Plan, key.Limits.PerMinute, key.Limits.PerDay)
		}
		return err
	})
	f.register(cmd, "")
	return cmd
}

func keysRotateCommand(at *keyLocation) *cobra.Command {
	var graceText string
	var grace time.Duration
	cmd := at.onKey(&cobra.Command{
		Use:   "rotate ID",
		Short: "Give a key a new secret and print it",
		Long: `Give a key a new secret and print it to standard output, with nothing else. The
key keeps its id, plan and usage. The old secret keeps working for a grace
period.`,
		Example: `  animalstore keys rotate 2
  animalstore keys rotate 2 --grace 0s`,
		PreRunE: func(*cobra.Command, []string) (err error) {
			if grace, err = terminal.ParseDuration(graceText); err != nil || grace < 0 {
				return usageError{fmt.Errorf("--grace must be a duration such as 7d, 12h or 0s, not %q", graceText)}
			}
			return nil
		},
	}, func(cmd *cobra.Command, store keyadmin.Keys, p *terminal.Printer, id int64) error {
		if _, remote := store.(keyadmin.Server); remote && grace > keyadmin.MaxServerGrace {
			return usageError{errors.New("--grace must be at most 90d, which is the most a server allows")}
		}
		key, secret, err := store.Rotate(cmd.Context(), id, grace)
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
	cmd.Flags().StringVar(&graceText, "grace", "24h", "how long the old secret keeps working, such as 7d, 12h or 0s")
	return cmd
}
