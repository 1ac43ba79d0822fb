package dbadmin

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/db/postgres"
	"animalstore/internal/db/sqlite"
	"animalstore/internal/db/transfer"
	"animalstore/internal/sample"
	"animalstore/internal/server"
	"animalstore/internal/terminal"
)

// seedTimeout limits one batch in PostgreSQL. It is longer than a server's, because no
// client is waiting for a response.
const seedTimeout = time.Minute

// SeedDatabase adds a sample to the database with this URL. It calls fatal if that can't
// be trusted any more.
func SeedDatabase(ctx context.Context, url string, s sample.Store, fatal func(error), p *terminal.Printer) error {
	var store db.DB
	var err error
	if postgres.Is(url) {
		store, err = postgres.Open(ctx, url, postgres.Options{Timeout: seedTimeout})
	} else {
		// Serve keeps a server off the file: it wouldn't notice rows written past it.
		store, err = server.OpenDatabase(ctx, url, sqlite.Options{Serve: true, Fatal: fatal})
	}
	if err != nil {
		return err
	}
	return errors.Join(Seed(ctx, store, s, p), store.Close())
}

// Seed adds a sample to a database, and prints how much that was.
func Seed(ctx context.Context, store db.DB, s sample.Store, p *terminal.Printer) error {
	bulk, ok := store.(db.Bulk)
	if !ok {
		return errors.New("this kind of database can't be filled. Use another one with --database")
	}
	ids, missing, err := transfer.CategoryIDs(ctx, store, s.Categories())
	if err != nil {
		return fmt.Errorf("read the categories: %w", err)
	}
	s.CategoryIDs = ids
	began, show := time.Now(), terminal.NewProgress(p.Notes, s.Pets, "pets")
	stored, err := transfer.Load(ctx, bulk, sampleBatches(s, missing), show.Add)
	show.Clear()
	if err != nil {
		return seedError(ctx, err, stored, s.Pets)
	}
	p.Note("Added %s, %s and %s in %.1f s, %s pets a second.",
		terminal.Count(stored.Pets, "pet", "pets"), terminal.Count(stored.Categories, "category", "categories"), terminal.Count(stored.Orders, "order", "orders"),
		time.Since(began).Seconds(), terminal.Grouped(show.Rate()))
	result := struct {
		Pets       int64 `json:"pets"`
		Categories int64 `json:"categories"`
		Orders     int64 `json:"orders"`
	}{stored.Pets, stored.Categories, stored.Orders}
	return p.Result(result, `Next: run "animalstore serve" with the same --database.`)
}

// sampleBatches are the batches of a sample. The first also has the categories that
// are missing in the store.
func sampleBatches(s sample.Store, missing []animalstore.Category) iter.Seq[db.Rows] {
	return func(yield func(db.Rows) bool) {
		for b := range s.Batches() {
			if !yield(db.Rows{Categories: missing, Pets: b.Pets, Orders: b.Orders}) {
				return
			}
			missing = nil
		}
	}
}

// seedError says what is stored, and how to add the rest.
func seedError(ctx context.Context, err error, stored transfer.Loaded, pets int64) error {
	rest := fmt.Sprintf("added %s of %s, with %s and %s, and nothing is half done. Add the rest with --pets %d",
		terminal.Grouped(stored.Pets), terminal.Count(pets, "pet", "pets"), terminal.Count(stored.Categories, "category", "categories"), terminal.Count(stored.Orders, "order", "orders"), pets-stored.Pets)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("stopped: %s", rest)
	case errors.Is(err, db.ErrFull):
		return fmt.Errorf("the disk is full: %s when there is room", rest)
	}
	return fmt.Errorf("%w: %s", err, rest)
}
