package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"animalstore"
	"animalstore/internal/db"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

var _ db.Bulk = (*DB)(nil)

// Reserve implements [db.Bulk]. An insert takes its id from the sequence while it
// holds a lock on the table, which conflicts with the lock taken here. Orders are
// locked first, as in UpdateOrder.
func (d *DB) Reserve(ctx context.Context, pets, orders int64) (lastPet, lastOrder int64, err error) {
	err = d.write(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
		if lastOrder, err = lockLastID(ctx, tx, "orders", orders); err != nil {
			return err
		}
		if lastPet, err = lockLastID(ctx, tx, "pets", pets); err != nil {
			return err
		}
		// A rollback doesn't reset a sequence, so neither is advanced before both
		// are known to have enough ids.
		if err := advanceSequence(ctx, tx, "orders", lastOrder+orders); err != nil {
			return err
		}
		return advanceSequence(ctx, tx, "pets", lastPet+pets)
	})
	return lastPet, lastOrder, err
}

// lockLastID returns the last id that a table assigned. The next n ids stay free
// until the transaction ends.
func lockLastID(ctx context.Context, tx pgx.Tx, table string, n int64) (last int64, err error) {
	if n != 0 {
		if _, err := tx.Exec(ctx, "LOCK TABLE "+table+" IN SHARE ROW EXCLUSIVE MODE"); err != nil {
			return 0, failed("lock "+table, err)
		}
	}
	if last, err = lastID(ctx, tx, table); err != nil {
		return 0, err
	}
	if n < 0 || n > math.MaxInt64-last {
		return 0, fmt.Errorf("reserve %d ids of %s after %d: there aren't that many", n, table, last)
	}
	return last, nil
}

// sequence returns the name of the sequence of a table's ids.
func sequence(table string) string { return table + "_id_seq" }

// lastID returns the last id that a table assigned, or 0.
func lastID(ctx context.Context, tx pgx.Tx, table string) (last int64, err error) {
	err = tx.QueryRow(ctx, "SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END FROM "+sequence(table)).Scan(&last)
	return last, failed("select last id of "+table, err)
}

// advanceSequence makes id the last one that a table assigned, unless the last one is
// higher.
func advanceSequence(ctx context.Context, tx pgx.Tx, table string, id int64) error {
	last, err := lastID(ctx, tx, table)
	if err != nil || id <= last {
		return err
	}
	_, err = tx.Exec(ctx, "SELECT setval($1::regclass, $2)", sequence(table), id)
	return failed("reserve ids of "+table, err)
}

// Load implements [db.Bulk].
func (d *DB) Load(ctx context.Context, rows db.Rows) error {
	err := d.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		err := copyAll(ctx, tx, "categories", []string{"id", "name"}, rows.Categories, func(c *animalstore.Category) []any {
			return []any{c.ID, c.Name}
		})
		if err != nil {
			return err
		}
		var lastPet, lastOrder int64
		err = copyAll(ctx, tx, "pets", []string{"id", "name", "category_id", "status"}, rows.Pets, func(p *animalstore.Pet) []any {
			lastPet = max(lastPet, p.ID)
			return []any{p.ID, p.Name, p.CategoryID, db.StoredIndex(animalstore.PetStatuses, p.Status)}
		})
		if err != nil {
			return err
		}
		err = copyAll(ctx, tx, "name_entries", []string{"entry", "pet_id", "shared"}, allNameEntries(rows.Pets), func(e *petEntry) []any {
			return []any{e.Text, e.petID, int64(e.Shared)}
		})
		if err != nil {
			return err
		}
		err = copyAll(ctx, tx, "orders", strings.Split(db.OrderColumns, ", "), rows.Orders, func(o *animalstore.Order) []any {
			lastOrder = max(lastOrder, o.ID)
			return []any{o.ID, o.PetID, db.StoredIndex(animalstore.OrderStatuses, o.Status), string(o.Reference), string(o.Note), o.CreatedAt.Milli(), o.UpdatedAt.Milli()}
		})
		if err != nil {
			return err
		}
		if err := loadPhotos(ctx, tx, rows.Photos); err != nil {
			return err
		}
		if err := advanceSequence(ctx, tx, "orders", lastOrder); err != nil {
			return err
		}
		return advanceSequence(ctx, tx, "pets", lastPet)
	})
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == uniqueViolation && strings.HasSuffix(refused.ConstraintName, "_pkey") {
		return fmt.Errorf("%w: %w", db.ErrExists, err)
	}
	return err
}

func copyAll[Row any](ctx context.Context, tx pgx.Tx, table string, columns []string, rows []Row, values func(*Row) []any) error {
	if len(rows) == 0 {
		return nil
	}
	_, err := tx.CopyFrom(ctx, pgx.Identifier{table}, columns, pgx.CopyFromSlice(len(rows), func(i int) ([]any, error) {
		return values(&rows[i]), nil
	}))
	return failed("load "+table, err)
}
