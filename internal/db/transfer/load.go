package transfer

import (
	"context"
	"iter"
	"math"

	"animalstore"
	"animalstore/internal/db"
)

// Loaded counts the rows that [Load] stored.
type Loaded struct{ Pets, Categories, Orders, Photos int64 }

// Load adds batches of rows to a store, each in one step, and calls progress with the
// number of pets after each. The pets and orders of a batch have ids from 1 and use
// them to refer to each other. Load replaces them with the next ids of the store. After an
// error, exactly the counted rows are stored.
func Load(ctx context.Context, bulk db.Bulk, batches iter.Seq[db.Rows], progress func(pets int)) (stored Loaded, err error) {
	for rows := range batches {
		lastPet, lastOrder, err := bulk.Reserve(ctx, int64(len(rows.Pets)), int64(len(rows.Orders)))
		if err != nil {
			return stored, err
		}
		rows.Shift(lastPet, lastOrder)
		if err := bulk.Load(ctx, rows); err != nil {
			return stored, err
		}
		stored.Pets += int64(len(rows.Pets))
		stored.Categories += int64(len(rows.Categories))
		stored.Orders += int64(len(rows.Orders))
		stored.Photos += int64(len(rows.Photos))
		progress(len(rows.Pets))
	}
	return stored, ctx.Err()
}

// CategoryIDs returns an id for each of the categories: the id of the store's category
// with the same name, or a free one. It also returns the categories with free ids,
// which aren't in the store yet.
func CategoryIDs(ctx context.Context, store db.DB, categories []animalstore.Category) (ids []int64, missing []animalstore.Category, err error) {
	idOf, taken := map[string]int64{}, map[int64]bool{}
	q := db.CategoryQuery{Limit: 1000}
	for {
		page, err := store.Categories(ctx, q)
		if err != nil {
			return nil, nil, err
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
	for _, c := range categories {
		id, known := idOf[c.Name]
		if !known {
			for free++; taken[free] && free < math.MaxInt64; free++ {
			}
			id = free
			missing = append(missing, animalstore.Category{ID: id, Name: c.Name})
		}
		ids = append(ids, id)
	}
	return ids, missing, nil
}
