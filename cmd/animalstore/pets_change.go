package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"animalstore"
	"animalstore/client"
	"animalstore/internal/cli"
	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
)

// petPatchFlags are the flags that say what to change in a pet.
type petPatchFlags struct {
	name     string
	category int64
	status   animalstore.PetStatus
}

func (f *petPatchFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.name, "name", "", "its new name")
	cmd.Flags().Int64Var(&f.category, "category", 0, "`id` of its new category")
	registerPetStatus(cmd, &f.status, "its new status: available, pending or sold")
}

func (f *petPatchFlags) patch(cmd *cobra.Command) (patch animalstore.PetPatch) {
	if cmd.Flag("name").Changed {
		patch.Name = &f.name
	}
	if cmd.Flag("category").Changed {
		patch.CategoryID = &f.category
	}
	if f.status != "" {
		patch.Status = &f.status
	}
	return patch
}

func petsSetCommand(conn *connection) *cobra.Command {
	var f petPatchFlags
	var ifMatch string
	cmd := pets.onItem(conn, &cobra.Command{
		Use:   "set ID",
		Short: "Change a pet",
		Long: `Change a pet's name, category or status, and print the changed pet.

An available pet can become pending or sold, a pending one available or sold.
Sold is final. An open order determines the status of its pet.

With --if-match the pet is changed only if it still has that ETag, so that you
don't overwrite someone else's change. "pets create" and "pets set" print the
ETag with --etag.`,
		Example: `  animalstore pets set 5 --status sold
  animalstore pets set 6 --name "Rex II" --category 8`,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			patch := f.patch(cmd)
			if patch == (animalstore.PetPatch{}) {
				return cli.Usagef("nothing to change: use --name, --category or --status")
			}
			return cmp.Or(patch.Validate(), cli.NotEmpty(cmd, "if-match"))
		},
	}, func(cmd *cobra.Command, s session, id int64) (animalstore.Pet, error) {
		var meta client.Meta
		options := []client.CallOption{client.ReadMeta(&meta)}
		if ifMatch != "" {
			options = append(options, client.IfMatch(quotedETag(ifMatch)))
		}
		pet, err := s.UpdatePet(cmd.Context(), id, f.patch(cmd), options...)
		if err == nil {
			s.Note("Changed pet %d.", pet.ID)
			s.noteETag(cmd, meta)
		}
		return pet, err
	})
	f.register(cmd)
	cmd.Flags().StringVar(&ifMatch, "if-match", "", "change it only if it still has this `ETag`")
	registerETag(cmd)
	return cmd
}

// quotedETag adds the quotes of an ETag if they are missing, because shells remove them.
func quotedETag(etag string) string {
	if etag == "*" || strings.HasPrefix(etag, `"`) {
		return etag
	}
	return `"` + etag + `"`
}

func petsRemoveCommand(conn *connection) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "remove ID...",
		Short: "Remove pets permanently",
		Long: `Remove pets permanently, and print them. If one of the ids doesn't exist,
nothing is removed. A pet with an open order can't be removed. On a terminal,
you are asked for confirmation.`,
		Example: `  animalstore pets remove 7 --yes
  animalstore pets remove 8 9 --yes`,
		Args: cli.SomeIDs("pets", maxPage),
		RunE: func(cmd *cobra.Command, args []string) error {
			columns, err := pets.chosen(cmd)
			if err != nil {
				return err
			}
			return conn.do(cmd, func(s session) error {
				found, err := findPets(cmd.Context(), s.Client, cli.IDs(args))
				if err == nil {
					err = requireConfirmation(cmd, removalQuestion(found))
				}
				if err != nil {
					return err
				}
				return terminal.PrintList(s.Printer, func(yield func(animalstore.Pet, error) bool) {
					for _, pet := range found {
						err := s.DeletePet(cmd.Context(), pet.ID)
						if err == nil {
							s.Note("Removed pet %d.", pet.ID)
						}
						if !yield(pet, err) || err != nil {
							return
						}
					}
				}, columns)
			})
		},
	}
	yesFlag(cmd)
	pets.registerOutput(cmd)
	return cmd
}

// removalQuestion asks whether to remove these pets.
func removalQuestion(found []animalstore.Pet) string {
	names := make([]string, len(found))
	for i, pet := range found {
		names[i] = decimal(pet.ID) + " (" + terminal.Visible(pet.Name) + ")"
	}
	what := "pet"
	if len(found) > 1 {
		what = terminal.Count(int64(len(found)), "pet", "pets") + ":"
	}
	return fmt.Sprintf("Remove %s %s permanently?", what, strings.Join(names, ", "))
}

// findPets returns the pets with these ids, in the same order, to be removed.
func findPets(ctx context.Context, c *client.Client, ids []int64) ([]animalstore.Pet, error) {
	found := map[int64]animalstore.Pet{}
	for pet, err := range c.ListPets(ctx, client.PetQuery{IDs: ids}) {
		if err != nil {
			return nil, err
		}
		found[pet.ID] = pet
	}
	var sorted []animalstore.Pet
	for _, id := range ids {
		pet, ok := found[id]
		if !ok {
			return nil, animalstore.Errorf(animalstore.PetNotFound, "there is no pet with id %d, so nothing was removed", id)
		}
		sorted = append(sorted, pet)
	}
	return sorted, nil
}
