package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"strconv"

	"animalstore"
	"animalstore/client"

	"github.com/spf13/cobra"
)

func petsCommand() *cobra.Command {
	var conn connection
	cmd := &cobra.Command{
		Use:   "pets",
		Short: "List, add, change and remove pets",
		Long: `List, add, change and remove the pets of a server.

` + keyHelp,
		Example: `  animalstore pets list --status available
  animalstore pets add --name Rex --category 7
  animalstore pets set 5 --status sold`,
		DisableFlagsInUseLine: true,
		Args:                  cobra.ArbitraryArgs,
		RunE:                  onlySubcommands,
	}
	conn.register(cmd.PersistentFlags())
	cmd.AddCommand(petsListCommand(&conn), petsAddCommand(&conn), petsGetCommand(&conn), petsSetCommand(&conn), petsRemoveCommand(&conn), petsImportCommand(&conn), petsExportCommand(&conn))
	return cmd
}

var petColumns = []column[animalstore.Pet]{
	{title: "ID", text: func(p animalstore.Pet) string { return decimal(p.ID) }},
	{title: "NAME", text: func(p animalstore.Pet) string { return p.Name }, shrink: true},
	{title: "CATEGORY", text: func(p animalstore.Pet) string { return decimal(p.CategoryID) }},
	{title: "STATUS", text: func(p animalstore.Pet) string { return string(p.Status) }, colour: petColour},
}

func petColour(p animalstore.Pet) colour {
	switch p.Status {
	case animalstore.PetAvailable:
		return green
	case animalstore.PetPending:
		return yellow
	}
	return faint
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

func petsListCommand(conn *connection) *cobra.Command {
	var f listFlags
	var q client.PetQuery
	var category int64
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List pets, the latest first",
		Example: `  animalstore pets list
  animalstore pets list --status available --category 7
  animalstore pets list --id 5,6 --json
  animalstore pets list --all --wait | cut -f 2`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			if len(q.IDs) > maxPage {
				return usageError{fmt.Errorf("--id takes %d ids at most, not %d", maxPage, len(q.IDs))}
			}
			if len(q.IDs) > 0 && !given(cmd, "limit") {
				f.all = true // whoever names them wants them
			}
			if cmd.Flag("category").Changed {
				q.CategoryID = &category
			}
			return conn.do(cmd, *f.json, func(s session) error {
				return printAll(s.printer, &f, "pets", petColumns, func(pageSize int) iter.Seq2[animalstore.Pet, error] {
					q.PageSize = pageSize
					return s.ListPets(cmd.Context(), q)
				})
			})
		},
	}
	f.register(cmd, 20)
	flags := cmd.Flags()
	flags.Var(oneOf[animalstore.PetStatus]{&q.Status, animalstore.PetStatuses, "status"}, "status", "only those in this status: available, pending or sold")
	flags.Int64Var(&category, "category", 0, "only those of the category with this `id`")
	flags.Var((*idList)(&q.IDs), "id", "only those with these `ids`, with commas between")
	return cmd
}

func petsGetCommand(conn *connection) *cobra.Command {
	cmd := showCommand(conn, "pet", "pets", petColumns, func(ctx context.Context, s session, id int64) (animalstore.Pet, error) {
		// FindPet asks the list, by id. GET on the pet itself is deprecated,
		// and gone from December 2030 on.
		return s.FindPet(ctx, id)
	})
	cmd.Use = "get ID"
	cmd.Example = `  animalstore pets get 5
  animalstore pets get 5 --json`
	return cmd
}

func petsAddCommand(conn *connection) *cobra.Command {
	var asJSON *bool
	var pet animalstore.NewPet
	var once string
	var etag bool
	cmd := &cobra.Command{
		Use:   "add",
		Short: "Add a pet",
		Long: `Add a pet, and print it with its id.

It is added once, however often the request has to be sent. To be able to repeat
the command itself, give it an --idempotency-key: with the same one and the same
content it does nothing new for 24 hours, and prints the pet again.`,
		Example: `  animalstore pets add --name Rex --category 7
  animalstore pets add --name Mia --category 2 --status pending --json
  animalstore pets add --name Tux --category 9 --idempotency-key tux-1`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flag("name").Changed || !cmd.Flag("category").Changed {
				return usageError{errors.New("a pet needs a --name and a --category")}
			}
			if err := errors.Join(pet.Validate(), notEmpty(cmd, "idempotency-key")); err != nil {
				return err
			}
			return conn.do(cmd, *asJSON, func(s session) error {
				var meta client.Meta
				once := onceOr(once)
				added, err := s.CreatePet(cmd.Context(), pet, client.IdempotencyKey(once), client.ReadMeta(&meta))
				if err != nil {
					return repeatable{err, once}
				}
				if meta.Replayed {
					s.note("Pet %d was added before, with this idempotency key.", added.ID)
				} else {
					s.note("Added pet %d.", added.ID)
				}
				if etag {
					s.note("ETag: %s", visible(meta.ETag))
				}
				return printItem(s.printer, added, petColumns)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&pet.Name, "name", "", "what it is called (required)")
	flags.Int64Var(&pet.CategoryID, "category", 0, "`id` of its category (required)")
	flags.Var(oneOf[animalstore.PetStatus]{&pet.Status, animalstore.PetStatuses, "status"}, "status", "available, pending or sold (default available)")
	registerOnce(cmd, &once)
	registerETag(cmd, &etag)
	asJSON = jsonFlag(cmd)
	return cmd
}

func registerOnce(cmd *cobra.Command, once *string) {
	cmd.Flags().StringVar(once, "idempotency-key", "", "`name` of this request: the same one does it once (default by chance)")
}

// onceOr is a name for a request, made up if none was given. The client would do
// so as well, but then the error of a lost request could not tell it.
func onceOr(name string) string {
	if name == "" {
		return rand.Text()
	}
	return name
}

// notEmpty refuses a flag that is given without a value, as by a variable of a
// script that is not set, where it would be taken for one that is not given.
func notEmpty(cmd *cobra.Command, flag string) error {
	if f := cmd.Flag(flag); f.Changed && f.Value.String() == "" {
		return usageError{fmt.Errorf("--%s is given, but empty", flag)}
	}
	return nil
}
