package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"iter"
	"strings"

	"animalstore"
	"animalstore/client"
	"animalstore/internal/cli"
	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
)

func petsCommand() *cobra.Command {
	var conn connection
	cmd := &cobra.Command{
		Use:   "pets",
		Short: "List, create, change and remove pets",
		Long: `List, create, change and remove the pets of a server.

` + keyHelp,
		Example: `  animalstore pets list --status available
  animalstore pets create --name Rex --category 7
  animalstore pets set 5 --status sold`,
	}
	conn.register(cmd, cmd.PersistentFlags())
	return cli.Group(cmd, petsListCommand(&conn), petsShowCommand(&conn), petsCreateCommand(&conn), petsSetCommand(&conn),
		petsRemoveCommand(&conn), petsImportCommand(&conn), petsExportCommand(&conn), petsPhotosCommand(&conn))
}

var pets = resource[animalstore.Pet]{"pet", "pets", petColumns}

var petColumns = []terminal.Column[animalstore.Pet]{
	{Title: "ID", Text: func(p animalstore.Pet) string { return decimal(p.ID) }},
	{Title: "NAME", Text: func(p animalstore.Pet) string { return p.Name }},
	{Title: "CATEGORY", Text: func(p animalstore.Pet) string { return decimal(p.CategoryID) }},
	stateColumn("STATUS", func(p animalstore.Pet) string { return string(p.Status) }),
}

// petFilter is the flags that select pets.
type petFilter struct {
	status   animalstore.PetStatus
	category int64
}

func (f *petFilter) register(cmd *cobra.Command) {
	registerPetStatus(cmd, &f.status, "only pets with this status: available, pending or sold")
	cmd.Flags().Int64Var(&f.category, "category", 0, "only pets in the category with this `id`")
}

func (f *petFilter) query(cmd *cobra.Command) animalstore.PetQuery {
	q := animalstore.PetQuery{Status: f.status}
	if cmd.Flag("category").Changed {
		q.CategoryID = &f.category
	}
	return q
}

func registerPetStatus(cmd *cobra.Command, status *animalstore.PetStatus, usage string) {
	cli.RegisterOneOf(cmd, status, animalstore.PetStatuses, "status", usage)
}

func petsListCommand(conn *connection) *cobra.Command {
	var f listFlags
	var filter petFilter
	var ids []int64
	var name string
	cmd := pets.onList(conn, &cobra.Command{
		Use:   "list",
		Short: "List pets, newest first, or find them by name",
		Example: `  animalstore pets list
  animalstore pets list --status available --category 7
  animalstore pets list --name rex
  animalstore pets list --id 5,6 --json
  animalstore pets list --all --wait | cut -f 2`,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if len(ids) > maxPage {
				return cli.Usagef("--id takes at most %d ids, not %d", maxPage, len(ids))
			}
			if err := cli.NotEmpty(cmd, "name"); err != nil {
				return err
			}
			if len(ids) > 0 && name != "" {
				return cli.Usagef("use --name or --id, not both")
			}
			if len(ids) > 0 && !cli.Given(cmd, "limit") {
				f.all = true // of the named ones
			}
			return nil
		},
	}, &f, func(cmd *cobra.Command, s invocation, pageSize int) iter.Seq2[animalstore.Pet, error] {
		q := filter.query(cmd)
		q.IDs, q.Name = ids, name
		return s.ListPets(cmd.Context(), q, client.PageSize(pageSize))
	})
	filter.register(cmd)
	cli.RegisterIDs(cmd, &ids, "id", "only pets with these comma-separated `ids`")
	cmd.Flags().StringVar(&name, "name", "", "only pets with this `text` at the beginning of one of the first four words of their name, ignoring case, sorted by the matching part")
	return cmd
}

func petsShowCommand(conn *connection) *cobra.Command {
	return pets.onItem(conn, &cobra.Command{
		Use:   "show ID",
		Short: "Show one pet",
		Example: `  animalstore pets show 5
  animalstore pets show 5 --json`,
	}, func(cmd *cobra.Command, s invocation, id int64) (animalstore.Pet, error) {
		// FindPet uses the list, with an id: GET on the pet itself is deprecated
		// and will be gone in December 2030.
		return s.FindPet(cmd.Context(), id)
	})
}

func petsCreateCommand(conn *connection) *cobra.Command {
	var pet animalstore.NewPet
	var idempotencyKey string
	cmd := pets.onItem(conn, &cobra.Command{
		Use:   "create",
		Short: "Add a pet",
		Long: `Add a pet, and print it with its id.

The pet is added once, even if the request has to be sent several times. To make
the command itself repeatable, give it an --idempotency-key: for 24 hours,
running it again with the same key and the same content adds nothing and prints
the same pet.`,
		Example: `  animalstore pets create --name Rex --category 7
  animalstore pets create --name Mia --category 2 --status pending --json
  animalstore pets create --name Tux --category 9 --idempotency-key tux-1`,
		Args: cli.NoArguments,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flag("name").Changed || !cmd.Flag("category").Changed {
				return cli.Usagef("a pet needs a --name and a --category")
			}
			return cmp.Or(pet.Validate(), cli.NotEmpty(cmd, "idempotency-key"))
		},
	}, func(cmd *cobra.Command, s invocation, _ int64) (animalstore.Pet, error) {
		var meta client.Meta
		requestKey := orRandom(idempotencyKey)
		added, err := s.CreatePet(cmd.Context(), pet, client.IdempotencyKey(requestKey), client.ReadMeta(&meta))
		switch {
		case err != nil:
			return added, repeatable{err, requestKey}
		case meta.Replayed:
			s.Note("Pet %d was already added with this idempotency key.", added.ID)
		default:
			s.Note("Added pet %d.", added.ID)
		}
		s.noteETag(cmd, meta)
		return added, nil
	})
	cmd.Flags().StringVar(&pet.Name, "name", "", "the pet's name (required)")
	cmd.Flags().Int64Var(&pet.CategoryID, "category", 0, "`id` of its category (required)")
	registerPetStatus(cmd, &pet.Status, "available, pending or sold (default available)")
	registerIdempotencyKey(cmd, &idempotencyKey)
	registerETag(cmd)
	return cmd
}

func registerETag(cmd *cobra.Command) {
	cmd.Flags().Bool("etag", false, "print the pet's ETag to standard error")
}

// noteETag prints the ETag of a response if --etag asks for it.
func (s invocation) noteETag(cmd *cobra.Command, meta client.Meta) {
	if cmd.Flag("etag").Value.String() == "true" {
		s.Note("ETag: %s", terminal.Visible(meta.ETag))
	}
}

func registerIdempotencyKey(cmd *cobra.Command, key *string) {
	cmd.Flags().StringVar(key, "idempotency-key", "", "`key` that identifies this request: repeated with the same one, it is done only once (default random)")
}

// orRandom returns the key of a request, a random one if none was given. The
// client would generate one as well, but then the error for a lost request
// couldn't mention it.
func orRandom(key string) string {
	if key == "" {
		return rand.Text()
	}
	return key
}

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
	}, func(cmd *cobra.Command, s invocation, id int64) (animalstore.Pet, error) {
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
	cmd := pets.onServer(conn, &cobra.Command{
		Use:   "remove ID...",
		Short: "Remove pets permanently",
		Long: `Remove pets permanently, and print them. If one of the ids doesn't exist,
nothing is removed. A pet with an open order can't be removed. On a terminal,
you are asked for confirmation.`,
		Example: `  animalstore pets remove 7 --yes
  animalstore pets remove 8 9 --yes`,
		Args: cli.SomeIDs("pets", maxPage),
	}, func(cmd *cobra.Command, s invocation, args []string, columns []terminal.Column[animalstore.Pet]) error {
		found, err := findPets(cmd.Context(), s.Client, cli.IDs(args))
		if err == nil {
			err = requireConfirmation(cmd, removalQuestion(found))
		}
		if err != nil {
			return err
		}
		return printEach(s.Printer, found, columns, func(pet animalstore.Pet) (animalstore.Pet, error) {
			err := s.DeletePet(cmd.Context(), pet.ID)
			if err == nil {
				s.Note("Removed pet %d.", pet.ID)
			}
			return pet, err
		})
	})
	yesFlag(cmd)
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
	for pet, err := range c.ListPets(ctx, animalstore.PetQuery{IDs: ids}) {
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
