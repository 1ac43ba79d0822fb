package main

import (
	"animalstore"
	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
)

func inventoryCommand() *cobra.Command {
	var conn connection
	var category int64
	cmd := conn.command(&cobra.Command{
		Use:   "inventory",
		Short: "Count pets by status",
		Long: `Show how many pets are available, pending and sold, in the whole store or in one
category. The counts may be up to ten seconds old.

` + keyHelp,
		Example: `  animalstore inventory
  animalstore inventory --category 7 --json`,
	}, func(cmd *cobra.Command, s invocation) error {
		var q animalstore.InventoryQuery
		if cmd.Flag("category").Changed {
			q.CategoryID = &category
		}
		inventory, err := s.GetInventory(cmd.Context(), q)
		switch {
		case err != nil:
			return err
		case s.JSON:
			return s.PrintJSON(inventory)
		}
		return s.PrintFields([]terminal.Field{
			{Name: "Available", Value: decimal(inventory.Available)},
			{Name: "Pending", Value: decimal(inventory.Pending)},
			{Name: "Sold", Value: decimal(inventory.Sold)},
		})
	})
	cmd.Flags().Int64Var(&category, "category", 0, "only pets in the category with this `id`")
	return cmd
}
