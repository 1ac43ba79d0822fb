package main

import (
	"fmt"
	"time"

	"animalstore"
	"animalstore/client"
	"animalstore/internal/cli"
	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
)

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
		Long: `Lift the ban of a key that kept sending requests after it was told to wait. Its
limits don't change, and the next ban, if it comes within a day, is even longer.`,
		Example: "  animalstore keys unban 2",
	}, func(cmd *cobra.Command, store keyStore, p *terminal.Printer, id int64) error {
		key, lifted, err := store.Unban(cmd.Context(), id)
		switch {
		case err != nil:
			return err
		case lifted:
			return p.Result(key, "Lifted the ban of key %d (%s). A running server follows within a second.", key.ID, terminal.Visible(key.Name))
		}
		return p.Result(key, "%s isn't banned.", keyTitle(key))
	})
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
				return cli.Usagef("--grace must be a duration such as 7d, 12h or 0s, not %q", graceText)
			}
			return nil
		},
	}, func(cmd *cobra.Command, store keyStore, p *terminal.Printer, id int64) error {
		if _, remote := store.(serverKeys); remote && grace > maxServerGrace {
			return cli.Usagef("--grace must be at most 90d, which is the most a server allows")
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
		return printSecret(p, "key", key.ID, secret, client.KeyWithSecret{Key: key, Secret: secret})
	})
	cmd.Flags().StringVar(&graceText, "grace", "24h", "how long the old secret keeps working, such as 7d, 12h or 0s")
	return cmd
}
