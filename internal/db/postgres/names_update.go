package postgres

import (
	"context"
	"database/sql"
	_ "embed"
	"fmt"

	"animalstore/internal/db"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
)

// namesVersion is the version of the tables that have folded names.
const namesVersion = 7

// foldBatch is how many pets get their folded name in one transaction.
const foldBatch = 20_000

//go:embed names_begin.sql
var beginNames string

// finishNames ends migration 7. Each statement may run again after an interruption, and
// none keeps others from reading for long: with a validated constraint, setting NOT NULL
// doesn't read the table.
var finishNames = []string{
	"CREATE INDEX IF NOT EXISTS pets_by_name ON pets (folded_name, id) INCLUDE (status, category_id)",
	"ALTER TABLE pets DROP CONSTRAINT IF EXISTS folded_name_set",
	"ALTER TABLE pets ADD CONSTRAINT folded_name_set CHECK (folded_name IS NOT NULL) NOT VALID",
	"ALTER TABLE pets VALIDATE CONSTRAINT folded_name_set",
	"ALTER TABLE pets ALTER COLUMN folded_name SET NOT NULL",
	"ALTER TABLE pets DROP CONSTRAINT folded_name_set",
}

// namesMigration is migration 7: it stores the folded name of every pet. PostgreSQL can't
// fold names, and all at once would take one long transaction, so it isn't a file of SQL.
// After an interruption it continues where it was.
func namesMigration(progress func(db.Update)) *goose.Migration {
	return goose.NewGoMigration(namesVersion, &goose.GoFunc{RunDB: func(ctx context.Context, pool *sql.DB) error {
		conn, err := pool.Conn(ctx)
		if err != nil {
			return err
		}
		defer conn.Close()
		return conn.Raw(func(driver any) error {
			return updateNames(ctx, driver.(*stdlib.Conn).Conn(), progress)
		})
	}}, nil)
}

func updateNames(ctx context.Context, c *pgx.Conn, progress func(db.Update)) error {
	if _, err := c.Exec(ctx, beginNames); err != nil {
		return err
	}
	if err := foldNames(ctx, c, progress); err != nil {
		return err
	}
	for i, statement := range finishNames {
		if i == 0 {
			progress(db.Update{Step: "building the index of names"})
		}
		if _, err := c.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

// foldNames stores the folded name of all pets that don't have one. Nobody else changes
// pets meanwhile: older versions can't, and this one waits for the migration.
func foldNames(ctx context.Context, c *pgx.Conn, progress func(db.Update)) error {
	var total, done, last int64
	if err := c.QueryRow(ctx, "SELECT count(*), count(folded_name) FROM pets").Scan(&total, &done); err != nil {
		return err
	}
	for {
		if total > 0 {
			progress(db.Update{Step: "folding names", Done: done, Total: total})
		}
		rows, err := c.Query(ctx, "SELECT id, name FROM pets WHERE id > $1 AND folded_name IS NULL ORDER BY id LIMIT $2", last, foldBatch)
		if err != nil {
			return err
		}
		var ids []int64
		var folded []string
		var id int64
		var name string
		_, err = pgx.ForEachRow(rows, []any{&id, &name}, func() error {
			ids, folded = append(ids, id), append(folded, db.FoldName(name))
			return nil
		})
		if err != nil || len(ids) == 0 {
			return err
		}
		if err := storeFolded(ctx, c, ids, folded); err != nil {
			return err
		}
		done, last = done+int64(len(ids)), id
	}
}

// storeFolded stores folded names in one transaction. The bounds keep the planner from
// reading the whole table.
func storeFolded(ctx context.Context, c *pgx.Conn, ids []int64, folded []string) error {
	_, err := c.Exec(ctx, `UPDATE pets SET folded_name = new.folded FROM unnest($1::bigint[], $2::text[]) AS new (id, folded)
		WHERE pets.id = new.id AND pets.id BETWEEN $3 AND $4`, ids, folded, ids[0], ids[len(ids)-1])
	return err
}
