package main

import (
	"fmt"
	"iter"
	"net/http"

	"animalstore"
	"animalstore/client"
	"animalstore/internal/cli"
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
	conn.register(cmd, cmd.PersistentFlags())
	return cli.Group(cmd, categoriesListCommand(&conn), categoriesShowCommand(&conn), categoriesCreateCommand(&conn), categoriesSetCommand(&conn))
}

var categories = resource[animalstore.Category]{"category", "categories", categoryColumns}

var categoryColumns = []terminal.Column[animalstore.Category]{
	{Title: "ID", Text: func(c animalstore.Category) string { return decimal(c.ID) }},
	{Title: "NAME", Text: func(c animalstore.Category) string { return c.Name }},
}

func categoriesListCommand(conn *connection) *cobra.Command {
	return categories.onList(conn, &cobra.Command{
		Use:   "list",
		Short: "List categories, lowest id first",
		Example: `  animalstore categories list
  animalstore categories list --all --json`,
	}, &listFlags{}, func(cmd *cobra.Command, s invocation, pageSize int) iter.Seq2[animalstore.Category, error] {
		return s.ListCategories(cmd.Context(), client.PageSize(pageSize))
	})
}

func categoriesShowCommand(conn *connection) *cobra.Command {
	return categories.onItem(conn, &cobra.Command{
		Use:   "show ID",
		Short: "Show one category",
		Example: `  animalstore categories show 7
  animalstore categories show --json -- -3`,
	}, func(cmd *cobra.Command, s invocation, id int64) (animalstore.Category, error) {
		return s.GetCategory(cmd.Context(), id)
	})
}

func categoriesCreateCommand(conn *connection) *cobra.Command {
	return categoriesPutCommand(conn, &cobra.Command{
		Use:     "create ID",
		Short:   "Add a category",
		Long:    `Add a category with a name, and print it. It must not exist yet.`,
		Example: "  animalstore categories create 70 --name Dogs",
	}, client.IfNoneMatch("*"))
}

func categoriesSetCommand(conn *connection) *cobra.Command {
	return categoriesPutCommand(conn, &cobra.Command{
		Use:     "set ID",
		Short:   "Name a category, or add one",
		Long:    `Name a category, and print it. A category that does not exist is added.`,
		Example: "  animalstore categories set 7 --name Dogs",
	})
}

func categoriesPutCommand(conn *connection, cmd *cobra.Command, options ...client.CallOption) *cobra.Command {
	var name string
	cmd.PreRunE = func(*cobra.Command, []string) error { return animalstore.Category{Name: name}.Validate() }
	categories.onItem(conn, cmd, func(cmd *cobra.Command, s invocation, id int64) (animalstore.Category, error) {
		var meta client.Meta
		category, err := s.PutCategory(cmd.Context(), animalstore.Category{ID: id, Name: name}, append(options, client.ReadMeta(&meta))...)
		switch {
		case meta.Status == http.StatusPreconditionFailed:
			err = cliError{err, fmt.Sprintf(`category %d already exists: rename it with "animalstore categories set"`, id), exitError}
		case err != nil:
		case meta.Status == http.StatusCreated:
			s.Note("Added category %d.", category.ID)
		default:
			s.Note("Named category %d.", category.ID)
		}
		return category, err
	})
	cmd.Flags().StringVar(&name, "name", "", "its name (required)")
	return cmd
}
