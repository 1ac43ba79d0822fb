package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/db/postgres"
	"animalstore/internal/db/sqlite"
	"animalstore/internal/sample"
	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
)

type seedFlags struct {
	database string
	pets     int64
	seed     uint64
}

func seedCommand() *cobra.Command {
	var f seedFlags
	var animals int64 // the old name of --pets
	cmd := &cobra.Command{
		Use:   "seed",
		Short: "Fill a store with sample pets",
		Long: `Fill a store with sample pets, directly in the database: pets with names, in
categories with names, and orders that match the status of each pet. The same
--seed and --pets always give the same store.

Existing data isn't changed. Don't run a server on the same SQLite file at the
same time. Ctrl-C stops it cleanly.`,
		Example: `  animalstore seed --pets 1000
  animalstore seed --pets 1000000 --seed 7 --database sqlite:sample.db
  animalstore seed --pets 1000000 --database postgres://animalstore@db1/store`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("pets") {
				f.pets = animals
			}
			if f.pets < 1 || f.pets > sample.MaxPets {
				return usageError{fmt.Errorf("--pets must be the number of pets to add: 1 to %d", sample.MaxPets)}
			}
			return seed(cmd.Context(), f, cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.database, "database", "sqlite:animalstore.db", databaseUsage)
	flags.Int64Var(&f.pets, "pets", 0, "the number of pets to add (required)")
	flags.Int64Var(&animals, "animals", 0, "the old name of --pets")
	flags.MarkHidden("animals")
	flags.Uint64Var(&f.seed, "seed", 1, "which sample to generate: any number")
	return cmd
}

// seed fills the database that --database names.
func seed(ctx context.Context, f seedFlags, stderr io.Writer) error {
	store, err := openToSeed(ctx, f.database, stderr)
	if err != nil {
		return err
	}
	return errors.Join(fill(ctx, store, sample.Store{Seed: f.seed, Pets: f.pets}, stderr), store.Close())
}

// seedTimeout limits one batch in PostgreSQL. It is longer than a server's,
// because no client is waiting for a response.
const seedTimeout = time.Minute

func openToSeed(ctx context.Context, url string, stderr io.Writer) (db.DB, error) {
	if postgres.Is(url) && postgres.CheckURL(url) == nil {
		return postgres.Open(ctx, url, postgres.Options{Timeout: seedTimeout})
	}
	// Serve keeps a server off the file: it wouldn't notice rows written past it.
	return openDatabase(ctx, url, sqlite.Options{Serve: true, Fatal: exitOnDamage(stderr)})
}

// seedCounts counts what is stored.
type seedCounts struct{ pets, categories, orders int64 }

func (n seedCounts) String() string {
	return fmt.Sprintf("%s, %s and %s", terminal.Count(n.pets, "pet", "pets"), terminal.Count(n.categories, "category", "categories"), terminal.Count(n.orders, "order", "orders"))
}

// fill adds a sample to a database and reports on it.
func fill(ctx context.Context, store db.DB, s sample.Store, stderr io.Writer) error {
	bulk, ok := store.(db.Bulk)
	if !ok {
		return errors.New("this kind of database can't be filled. Use another one with --database")
	}
	missing, err := placeCategories(ctx, store, &s)
	if err != nil {
		return fmt.Errorf("read the categories: %w", err)
	}
	began := time.Now()
	show := terminal.NewProgress(stderr, s.Pets, "pets")
	stored, err := load(ctx, bulk, s, missing, show)
	show.Clear()
	if err != nil {
		return seedError(ctx, err, stored, s.Pets)
	}
	fmt.Fprintf(stderr, "Added %v in %.1f s, %s pets a second.\nNext: run \"animalstore serve\" with the same --database.\n",
		stored, time.Since(began).Seconds(), terminal.Grouped(show.Rate()))
	return nil
}

// load stores a sample batch by batch. While one is written, the next is
// generated.
func load(ctx context.Context, bulk db.Bulk, s sample.Store, missing []animalstore.Category, show *terminal.Progress) (stored seedCounts, err error) {
	generating, stop := context.WithCancel(ctx)
	defer stop()
	batches := make(chan sample.Batch, 1)
	go func() {
		defer close(batches)
		for b := range s.Batches() {
			select {
			case batches <- b:
			case <-generating.Done():
				return
			}
		}
	}()
	for b := range batches {
		lastPet, lastOrder, err := bulk.Reserve(ctx, int64(len(b.Pets)), int64(len(b.Orders)))
		if err != nil {
			return stored, err
		}
		b.Shift(lastPet, lastOrder)
		if err := bulk.Load(ctx, db.Rows{Categories: missing, Pets: b.Pets, Orders: b.Orders}); err != nil {
			return stored, err
		}
		stored.pets += int64(len(b.Pets))
		stored.categories += int64(len(missing))
		stored.orders += int64(len(b.Orders))
		missing = nil
		show.Add(len(b.Pets))
	}
	return stored, ctx.Err()
}

// seedError says what is stored, and how to add the rest.
func seedError(ctx context.Context, err error, stored seedCounts, pets int64) error {
	rest := fmt.Sprintf("added %s of %s, with %s and %s, and nothing is half done. Add the rest with --pets %d",
		terminal.Grouped(stored.pets), terminal.Count(pets, "pet", "pets"), terminal.Count(stored.categories, "category", "categories"), terminal.Count(stored.orders, "order", "orders"), pets-stored.pets)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("stopped: %s", rest)
	case errors.Is(err, db.ErrFull):
		return fmt.Errorf("the disk is full: %s when there is room", rest)
	}
	return fmt.Errorf("%w: %s", err, rest)
}

// placeCategories sets an id for each of the sample's categories: that of a
// category of the same name, which an earlier run may have added, or else a free
// one. It returns the latter, which have to be stored.
func placeCategories(ctx context.Context, store db.DB, s *sample.Store) (missing []animalstore.Category, err error) {
	idOf, taken := map[string]int64{}, map[int64]bool{}
	q := db.CategoryQuery{Limit: 1000}
	for {
		page, err := store.Categories(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, c := range page {
			taken[c.ID] = true
			if _, known := idOf[c.Name]; !known {
				idOf[c.Name] = c.ID
			}
		}
		if len(page) < q.Limit {
			break
		}
		q.After = &page[len(page)-1].ID
	}
	free := int64(0)
	for _, c := range s.Categories() {
		id, known := idOf[c.Name]
		if !known {
			for free++; taken[free] && free < math.MaxInt64; free++ {
			}
			id = free
			missing = append(missing, animalstore.Category{ID: id, Name: c.Name})
		}
		s.CategoryIDs = append(s.CategoryIDs, id)
	}
	return missing, nil
}
