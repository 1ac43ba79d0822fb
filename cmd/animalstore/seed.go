package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/db/postgres"
	"animalstore/internal/db/sqlite"

	"github.com/spf13/cobra"
)

type seedFlags struct {
	database string
	pets     int64
	seed     uint64
}

func seedCommand() *cobra.Command {
	var f seedFlags
	var animals int64 // the former name of --pets
	cmd := &cobra.Command{
		Use:   "seed",
		Short: "Fill a store with sample pets",
		Long: `Fill a store with sample pets, straight in the database: pets with names,
in categories with names, and orders that agree with what is available, pending
and sold. The same --seed and --pets make the same store.

What is in the store already stays as it is. No server may be running on a
SQLite file meanwhile. Ctrl-C stops it in good order.`,
		Example: `  animalstore seed --pets 1000
  animalstore seed --pets 1000000 --seed 7 --database sqlite:sample.db
  animalstore seed --pets 1000000 --database postgres://animalstore@db1/store`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("pets") {
				f.pets = animals
			}
			if f.pets < 1 || f.pets > mostPets {
				return usageError{fmt.Errorf("say how many pets to add with --pets: 1 to %d", mostPets)}
			}
			return seed(cmd.Context(), f, cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.database, "database", "sqlite:animalstore.db", databaseUsage)
	flags.Int64Var(&f.pets, "pets", 0, "how many pets to add (required)")
	flags.Int64Var(&animals, "animals", 0, "the former name of --pets")
	flags.MarkHidden("animals")
	flags.Uint64Var(&f.seed, "seed", 1, "which store to make up: any number")
	return cmd
}

// seed fills the database that a flag names.
func seed(ctx context.Context, f seedFlags, stderr io.Writer) error {
	store, err := openToFill(ctx, f.database, stderr)
	if err != nil {
		return err
	}
	return errors.Join(fill(ctx, store, newSample(f.seed, f.pets), stderr), store.Close())
}

// seedPatience is how long a chunk may take in PostgreSQL. Nobody waits for an
// answer as the client of a server does.
const seedPatience = time.Minute

// openToFill opens a database for what is not the work of a server.
func openToFill(ctx context.Context, url string, stderr io.Writer) (db.DB, error) {
	if postgres.Is(url) && postgres.CheckURL(url) == nil {
		return postgres.Open(ctx, url, postgres.Options{Timeout: seedPatience})
	}
	// It takes the place of the file's server, because a server would not know
	// of what is written past it.
	return openDatabase(ctx, url, sqlite.Options{
		Serve: true,
		Fatal: func(err error) {
			fmt.Fprintln(stderr, "animalstore: the database cannot be trusted any more:", err)
			os.Exit(exitError)
		},
	})
}

// seeded counts what is stored.
type seeded struct{ pets, categories, orders int64 }

func (s seeded) String() string {
	return fmt.Sprintf("%s, %s and %s", countOf(s.pets, "pet", "pets"), countOf(s.categories, "category", "categories"), countOf(s.orders, "order", "orders"))
}

func countOf(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return grouped(n) + " " + many
}

// fill stores a sample and tells of it.
func fill(ctx context.Context, store db.DB, s *sample, stderr io.Writer) error {
	bulk, ok := store.(db.Bulk)
	if !ok {
		return errors.New("this kind of database cannot be filled. Name another with --database")
	}
	categories, missing, err := placeCategories(ctx, store)
	s.categories = categories
	if err != nil {
		return fmt.Errorf("read the categories: %w", err)
	}
	began := time.Now()
	show := newProgress(stderr, s.pets, "pets")
	stored, err := load(ctx, bulk, s, missing, show)
	show.end()
	if err != nil {
		return unfinished(ctx, err, stored, s.pets)
	}
	fmt.Fprintf(stderr, "Added %v in %.1f s, %s pets a second.\nNext: \"animalstore serve\" on the same --database.\n",
		stored, time.Since(began).Seconds(), grouped(show.rate()))
	return nil
}

// load stores a sample chunk by chunk. While one is written, the next is made.
func load(ctx context.Context, bulk db.Bulk, s *sample, missing []animalstore.Category, show *progress) (stored seeded, err error) {
	making, stop := context.WithCancel(ctx)
	defer stop()
	chunks := make(chan db.Rows, 1)
	go func() {
		for s.made < s.pets {
			select {
			case chunks <- s.next():
			case <-making.Done():
				return
			}
		}
	}()
	for stored.pets < s.pets {
		var rows db.Rows
		select {
		case rows = <-chunks:
		case <-ctx.Done():
			return stored, ctx.Err()
		}
		lastPet, lastOrder, err := bulk.Reserve(ctx, int64(len(rows.Pets)), int64(len(rows.Orders)))
		if err != nil {
			return stored, err
		}
		renumber(&rows, lastPet, lastOrder)
		rows.Categories, missing = missing, nil
		if err := bulk.Load(ctx, rows); err != nil {
			return stored, err
		}
		stored.pets += int64(len(rows.Pets))
		stored.categories += int64(len(rows.Categories))
		stored.orders += int64(len(rows.Orders))
		show.add(len(rows.Pets))
	}
	return stored, nil
}

// unfinished says what is in the database, and how to go on.
func unfinished(ctx context.Context, err error, stored seeded, pets int64) error {
	rest := fmt.Sprintf("of %s, %v are stored, and nothing is half done. Add the rest with --pets %d",
		countOf(pets, "pet", "pets"), stored, pets-stored.pets)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("stopped: %s", rest)
	case errors.Is(err, db.ErrFull):
		return fmt.Errorf("the disk is full: %s once there is room", rest)
	}
	return fmt.Errorf("%w: %s", err, rest)
}

// placeCategories finds an id for each of sampleKinds: that of a category of the
// same name, which an earlier run may have made, or else one that is free. Those
// of the latter kind are missing and have to be stored.
func placeCategories(ctx context.Context, store db.DB) (ids []int64, missing []animalstore.Category, err error) {
	named, taken := map[string]int64{}, map[int64]bool{}
	q := db.CategoryQuery{Limit: 1000}
	for {
		page, err := store.Categories(ctx, q)
		if err != nil {
			return nil, nil, err
		}
		for _, c := range page {
			taken[c.ID] = true
			if _, known := named[c.Name]; !known {
				named[c.Name] = c.ID
			}
		}
		if len(page) < q.Limit {
			break
		}
		q.After = &page[len(page)-1].ID
	}
	free := int64(0)
	for _, kind := range sampleKinds {
		id, known := named[kind.name]
		if !known {
			for free++; taken[free] && free < math.MaxInt64; free++ {
			}
			id = free
			missing = append(missing, animalstore.Category{ID: id, Name: kind.name})
		}
		ids = append(ids, id)
	}
	return ids, missing, nil
}
