package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"animalstore"
	"animalstore/internal/cli"
	"animalstore/internal/db"
	"animalstore/internal/db/postgres"
	"animalstore/internal/db/sqlite"
	"animalstore/internal/db/transfer"
	"animalstore/internal/photo"
	"animalstore/internal/sample"
	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
)

type seedFlags struct {
	database databaseFlag
	pets     int64
	photos   int64
	seed     uint64
}

func seedCommand() *cobra.Command {
	var f seedFlags
	cmd := &cobra.Command{
		Use:   "seed",
		Short: "Fill a store with sample pets",
		Long: `Fill a store with sample pets, directly in the database: pets with names, in
categories with names, and orders that match the status of each pet. With
--photos, it also draws pictures for that many of the latest pets. The same
--seed, --pets and --photos always give the same store.

Existing data isn't changed. Don't run a server on the same SQLite file at the
same time. Ctrl-C stops it cleanly.`,
		Example: `  animalstore seed --pets 1000
  animalstore seed --pets 1000 --photos 100
  animalstore seed --pets 1000000 --seed 7 --database sqlite:sample.db
  animalstore seed --pets 1000000 --database postgres://animalstore@db1/store`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.pets < 1 || f.pets > sample.MaxPets {
				return cli.Usagef("--pets must be the number of pets to add: 1 to %d", sample.MaxPets)
			}
			if f.photos < 0 || f.photos > f.pets {
				return cli.Usagef("--photos must be the number of pets that get a photo: 0 to the number of --pets")
			}
			if err := f.database.check(); err != nil {
				return err
			}
			return seedDatabase(cmd.Context(), f.database, sample.Store{Seed: f.seed, Pets: f.pets, Photos: f.photos}, newPrinter(cmd))
		},
	}
	flags := cmd.Flags()
	f.database.register(flags)
	flags.Int64Var(&f.pets, "pets", 0, "the number of pets to add (required)")
	flags.Int64Var(&f.photos, "photos", 0, "how many of the latest of them get a photo")
	flags.Uint64Var(&f.seed, "seed", 1, "which sample to generate: any number")
	jsonFlag(cmd)
	return cmd
}

// seedTimeout limits one batch in PostgreSQL. It is longer than a server's, because no
// client is waiting for a response.
const seedTimeout = time.Minute

// seedDatabase adds a sample to a database.
func seedDatabase(ctx context.Context, d databaseFlag, s sample.Store, p *terminal.Printer) error {
	var store db.DB
	var err error
	if postgres.Is(d.url) {
		store, err = postgres.Open(ctx, d.url, postgres.Options{Timeout: seedTimeout})
		err = d.withFlag(err)
	} else {
		// Serve keeps servers from using the file: they wouldn't notice the new rows.
		store, err = d.open(ctx, sqlite.Options{Serve: true})
	}
	if err != nil {
		return err
	}
	return errors.Join(seedStore(ctx, store, s, p), store.Close())
}

// seedStore adds a sample to a database, and prints how much that was.
func seedStore(ctx context.Context, store db.DB, s sample.Store, p *terminal.Printer) error {
	ids, missing, err := transfer.CategoryIDs(ctx, store, s.Categories())
	if err != nil {
		return fmt.Errorf("read the categories: %w", err)
	}
	s.CategoryIDs = ids
	began, show := time.Now(), terminal.NewLine(p.Notes).Progress(s.Pets, "pets")
	stored, err := transfer.Load(ctx, store.(db.Bulk), sampleBatches(s, missing), show.Add)
	show.Clear()
	if err != nil {
		return seedError(ctx, err, stored, s.Pets)
	}
	photos := ""
	if stored.Photos > 0 {
		photos = ", " + terminal.Count(stored.Photos, "photo", "photos")
	}
	p.Note("Added %s%s, %s and %s in %.1f s, %s pets a second.",
		terminal.Count(stored.Pets, "pet", "pets"), photos, terminal.Count(stored.Categories, "category", "categories"), terminal.Count(stored.Orders, "order", "orders"),
		time.Since(began).Seconds(), terminal.Grouped(show.Rate()))
	result := struct {
		Pets       int64 `json:"pets"`
		Categories int64 `json:"categories"`
		Orders     int64 `json:"orders"`
		Photos     int64 `json:"photos"`
	}{stored.Pets, stored.Categories, stored.Orders, stored.Photos}
	return p.Result(result, `Next: run "animalstore serve" with the same --database.`)
}

// sampleBatches are the batches of a sample. The first also has the categories that
// are missing in the store.
func sampleBatches(s sample.Store, missing []animalstore.Category) iter.Seq[db.Rows] {
	return func(yield func(db.Rows) bool) {
		for b := range s.Batches() {
			if !yield(db.Rows{Categories: missing, Pets: b.Pets, Orders: b.Orders, Photos: samplePhotos(b)}) {
				return
			}
			missing = nil
		}
	}
}

// samplePhotos draws the photos of a batch.
func samplePhotos(b sample.Batch) (photos []db.NewPhoto) {
	for pet, draw := range b.Photos() {
		picture := photo.FromImage(draw())
		photos = append(photos, db.NewPhoto{
			PetID: pet, ContentType: picture.ContentType, Width: picture.Width, Height: picture.Height,
			Image: picture.Image, Thumbnail: picture.Thumbnail, At: sample.End,
		})
	}
	return photos
}

// seedError says what is stored, and how to add the rest.
func seedError(ctx context.Context, err error, stored transfer.Loaded, pets int64) error {
	rest := fmt.Sprintf("added %s of %s, with %s and %s, all complete. Add the rest with --pets %d",
		terminal.Grouped(stored.Pets), terminal.Count(pets, "pet", "pets"), terminal.Count(stored.Categories, "category", "categories"), terminal.Count(stored.Orders, "order", "orders"), pets-stored.Pets)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("stopped: %s", rest)
	case errors.Is(err, db.ErrFull):
		return fmt.Errorf("the disk is full: %s when there is space", rest)
	}
	return fmt.Errorf("%w: %s", err, rest)
}
