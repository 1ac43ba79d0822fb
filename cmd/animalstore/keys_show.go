package main

import (
	"iter"
	"time"

	"animalstore"
	"animalstore/client"
	"animalstore/internal/commandline"
	"animalstore/internal/keyadmin"
	"animalstore/internal/remote"
	"animalstore/internal/tables"
	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
)

func keysListCommand(at *keyLocation) *cobra.Command {
	var f commandline.ListFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List keys, the latest first, without their secrets",
		Example: `  animalstore keys list
  animalstore keys list --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.Check(cmd); err != nil {
				return err
			}
			columns, err := keyResource.chosen(cmd)
			if err != nil {
				return err
			}
			return at.do(cmd, func(store keyadmin.Keys, p *terminal.Printer) error {
				return keyResource.printPages(p, &f, columns, func(pageSize int) iter.Seq2[animalstore.Key, error] {
					return store.List(cmd.Context(), pageSize)
				})
			})
		},
	}
	f.Register(cmd, 0)
	keyResource.registerOutput(cmd)
	return cmd
}

var keyResource = resource[animalstore.Key]{"key", "keys", tables.Keys(time.Now()), func(k animalstore.Key) string { return k.Name }, remote.Every((*client.Client).ListKeys)}

func keysShowCommand(at *keyLocation) *cobra.Command {
	return at.onKey(&cobra.Command{
		Use:   "show ID",
		Short: "Show one key, without its secret",
		Long: `Show one key, without its secret. With --database it also shows how many
requests the key has left. A server shows that only to the key itself: see
"animalstore limits".`,
		Example: `  animalstore keys show 2
  animalstore keys show 2 --json`,
	}, func(cmd *cobra.Command, store keyadmin.Keys, p *terminal.Printer, id int64) error {
		key, limits, err := store.Show(cmd.Context(), id)
		if err != nil {
			return err
		}
		return tables.PrintKey(p, key, limits, time.Now())
	})
}
