package main

import (
	"fmt"
	"time"

	"animalstore"
	"animalstore/internal/cli"
	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
)

// keyPatchFlags are the flags that say what to change in a key.
type keyPatchFlags struct {
	planFlags
	name, permissions, expires string
}

func (f *keyPatchFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.name, "name", "", "its new name")
	flags.StringVar(&f.permissions, "permissions", "", "its new permissions, comma-separated: read, write, admin")
	cli.CompleteFlag(cmd, "permissions", cli.CompleteList((animalstore.Read | animalstore.Write | animalstore.Admin).Names()))
	flags.StringVar(&f.expires, "expires", "", "how long it works from now, such as 90d, 12h or 30m; \"never\" removes the expiry")
	f.planFlags.register(cmd, "")
}

func (f *keyPatchFlags) patch(cmd *cobra.Command, now time.Time) (patch animalstore.KeyPatch, err error) {
	if cmd.Flag("name").Changed {
		patch.Name = &f.name
	}
	if f.plan != "" {
		patch.Plan = new(animalstore.Plan(f.plan))
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
	if cmd.Flag("expires").Changed {
		patch.ExpiresAt = new(animalstore.Time)
		if f.expires != "never" {
			if *patch.ExpiresAt, err = parseExpiry(f.expires, now); err != nil {
				return patch, err
			}
		}
	}
	if patch == (animalstore.KeyPatch{}) {
		return patch, cli.Usagef("nothing to change: use --name, --permissions, --expires, --plan, or --per-minute and --per-day")
	}
	return patch, patch.Validate(now)
}

func keysSetCommand(at *keyLocation) *cobra.Command {
	var f keyPatchFlags
	var patch animalstore.KeyPatch
	cmd := at.onKey(&cobra.Command{
		Use:     "set ID",
		Aliases: []string{"set-plan"},
		Short:   "Change a key's name, permissions, expiry, plan or limits",
		Long: `Change a key's name, permissions, expiry, plan or limits. Every plan
has fixed limits except enterprise, which needs --per-minute and --per-day. A
key that is already on enterprise keeps its limits unless you give new ones.`,
		Example: `  animalstore keys set 2 --name till --permissions read
  animalstore keys set 2 --expires 90d
  animalstore keys set 2 --plan enterprise --per-minute 5000 --per-day 1000000`,
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
		return p.Result(key, "Changed %s%s A running server follows within a second.", keySentence(key), expires)
	})
	f.register(cmd)
	return cmd
}
