package main

import (
	"animalstore"
	"animalstore/client"
	"animalstore/internal/cli"
	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
)

func inventoryCommand() *cobra.Command {
	var conn connection
	var category int64
	cmd := &cobra.Command{
		Use:   "inventory",
		Short: "Count pets by status",
		Long: `Show how many pets are available, pending and sold, in the whole store or in one
category. The counts may be up to ten seconds old.

` + keyHelp,
		Example: `  animalstore inventory
  animalstore inventory --category 7 --json`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var q client.InventoryQuery
			if cmd.Flag("category").Changed {
				q.CategoryID = &category
			}
			return conn.do(cmd, func(s session) error {
				inventory, err := s.GetInventory(cmd.Context(), q)
				if err != nil {
					return err
				}
				return printInventory(s.Printer, inventory)
			})
		},
	}
	conn.register(cmd, cmd.Flags())
	cmd.Flags().Int64Var(&category, "category", 0, "only pets in the category with this `id`")
	jsonFlag(cmd)
	return cmd
}

func printInventory(p *terminal.Printer, i animalstore.Inventory) error {
	if p.JSON {
		return p.PrintJSON(i)
	}
	return p.PrintFields([]terminal.Field{
		{Name: "Available", Value: decimal(i.Available)},
		{Name: "Pending", Value: decimal(i.Pending)},
		{Name: "Sold", Value: decimal(i.Sold)},
	})
}
