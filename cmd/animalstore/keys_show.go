package main

import (
	"iter"
	"time"

	"animalstore"
	"animalstore/internal/cli"
	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
)

func keysListCommand(at *keyLocation) *cobra.Command {
	var f listFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List keys, the latest first, without their secrets",
		Example: `  animalstore keys list
  animalstore keys list --json`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			columns, err := keyResource.chosen(cmd)
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
