package sqlite

import (
	"context"
	"fmt"
	"math"

	"animalstore"
	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
)

// A status is stored as its place in the domain's list.
var (
	petStatuses   = animalstore.PetStatuses
	orderStatuses = animalstore.OrderStatuses
)

func number[S comparable](all []S, s S) int64 {
	for i, one := range all {
		if one == s {
			return int64(i)
		}
	}
	panic(fmt.Sprintf("status %v passed validation but is unknown", s))
}

// CreatePet implements [db.DB].
func (d *DB) CreatePet(ctx context.Context, p animalstore.NewPet) (animalstore.Pet, error) {
	if p.Status == "" {
		p.Status = animalstore.PetAvailable
	}
	pet := animalstore.Pet{Name: p.Name, CategoryID: p.CategoryID, Status: p.Status}
	err := d.writer.do(ctx, func(c *sqlite.Conn) error {
		stmt, err := c.Prepare("INSERT INTO pets (name, category_id, status) VALUES (?, ?, ?)")
		if err != nil {
			return fmt.Errorf("insert pet: %w", err)
		}
		stmt.BindText(1, p.Name)
		stmt.BindInt64(2, p.CategoryID)
		stmt.BindInt64(3, number(petStatuses, p.Status))
		if _, err := stmt.Step(); err != nil {
			return fmt.Errorf("insert pet: %w", err)
		}
		pet.ID = c.LastInsertRowID()
		return nil
	})
	return pet, err
}

// Pet implements [db.DB].
func (d *DB) Pet(ctx context.Context, id int64) (animalstore.Pet, error) {
	var pet animalstore.Pet
	err := d.read(ctx, func(c *sqlite.Conn) error {
		stmt, err := c.Prepare("SELECT id, category_id, status, name FROM pets WHERE id = ?")
		if err != nil {
			return fmt.Errorf("select pet: %w", err)
		}
		defer stmt.Reset()
		stmt.BindInt64(1, id)
		found, err := stmt.Step()
		if err != nil {
			return fmt.Errorf("select pet: %w", err)
		}
		if !found {
			return animalstore.Errorf(animalstore.PetNotFound, "there is no animal with id %d", id)
		}
		pet = scanPet(stmt)
		return nil
	})
	return pet, err
}

// Pets implements [db.DB].
func (d *DB) Pets(ctx context.Context, q db.PetQuery) ([]animalstore.Pet, error) {
	query := "SELECT id, category_id, status, name FROM pets WHERE id < ?1 ORDER BY id DESC LIMIT ?2"
	if q.Status != "" {
		query = "SELECT id, category_id, status, name FROM pets WHERE id < ?1 AND status = ?3 ORDER BY id DESC LIMIT ?2"
	}
	pets := make([]animalstore.Pet, 0, q.Limit)
	err := d.read(ctx, func(c *sqlite.Conn) error {
		stmt, err := c.Prepare(query)
		if err != nil {
			return fmt.Errorf("select pets: %w", err)
		}
		defer stmt.Reset()
		if q.Status != "" {
			stmt.BindInt64(3, number(petStatuses, q.Status))
		}
		stmt.BindInt64(1, below(q.Before))
		stmt.BindInt64(2, int64(q.Limit))
		for {
			more, err := stmt.Step()
			if err != nil {
				return fmt.Errorf("select pets: %w", err)
			}
			if !more {
				return nil
			}
			pets = append(pets, scanPet(stmt))
		}
	})
	return pets, err
}

func scanPet(stmt *sqlite.Stmt) animalstore.Pet {
	return animalstore.Pet{
		ID:         stmt.ColumnInt64(0),
		CategoryID: stmt.ColumnInt64(1),
		Status:     petStatuses[stmt.ColumnInt64(2)],
		Name:       stmt.ColumnText(3),
	}
}

// below is the bound of a list that starts before an id, or at the newest.
func below(before int64) int64 {
	if before == 0 {
		return math.MaxInt64
	}
	return before
}
