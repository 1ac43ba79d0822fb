package main

import (
	"context"
	"iter"
	"net/http"

	"animalstore"
	"animalstore/client"
	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
)

func categoriesCommand() *cobra.Command {
	var conn connection
	cmd := &cobra.Command{
		Use:   "categories",
		Short: "List and name categories",
		Long: `List and name the categories of a server. A category exists as soon as a pet is
in it, and has no name until it is given one. Its id can be any whole number;
write -- before a negative one.

` + keyHelp,
		Example: `  animalstore categories list
  animalstore categories set 7 --name Dogs`,
	}
	conn.register(cmd.PersistentFlags())
	return groupCommand(cmd, categoriesListCommand(&conn), categoriesShowCommand(&conn), categoriesSetCommand(&conn))
}

var categoryColumns = []terminal.Column[animalstore.Category]{
	{Title: "ID", Text: func(c animalstore.Category) string { return decimal(c.ID) }},
	{Title: "NAME", Text: func(c animalstore.Category) string { return c.Name }, Shrink: true},
}

func categoriesListCommand(conn *connection) *cobra.Command {
	var f listFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List categories, the lowest id first",
		Example: `  animalstore categories list
  animalstore categories list --all --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			return conn.do(cmd, *f.json, func(s session) error {
				return printPages(s.Printer, &f, "categories", categoryColumns, func(pageSize int) iter.Seq2[animalstore.Category, error] {
					return s.ListCategories(cmd.Context(), client.PageQuery{PageSize: pageSize})
				})
			})
		},
	}
	f.register(cmd, 20)
	return cmd
}

func categoriesShowCommand(conn *connection) *cobra.Command {
	cmd := showCommand(conn, "category", "categories", categoryColumns, func(ctx context.Context, s session, id int64) (animalstore.Category, error) {
		return s.GetCategory(ctx, id)
	})
	cmd.Example = `  animalstore categories show 7
  animalstore categories show --json -- -3`
	return cmd
}

func categoriesSetCommand(conn *connection) *cobra.Command {
	var asJSON *bool
	var category animalstore.Category
	cmd := &cobra.Command{
		Use:     "set ID",
		Short:   "Name a category, or add one",
		Long:    `Name a category, and print it. If none has this id, it is added.`,
		Example: "  animalstore categories set 7 --name Dogs",
		Args:    oneID("category", "categories"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if category.ID, err = parseID(args[0], "categories"); err != nil {
				return err
			}
			if err := category.Validate(); err != nil {
				return err
			}
			return conn.do(cmd, *asJSON, func(s session) error {
				var meta client.Meta
				category, err := s.PutCategory(cmd.Context(), category, client.ReadMeta(&meta))
				if err != nil {
					return err
				}
				did := "Named"
				if meta.Status == http.StatusCreated {
					did = "Added"
				}
				s.Note("%s category %d.", did, category.ID)
				return terminal.PrintItem(s.Printer, category, categoryColumns)
			})
		},
	}
	cmd.Flags().StringVar(&category.Name, "name", "", "its name (required)")
	asJSON = jsonFlag(cmd)
	return cmd
}
