package sqlite

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
)

// BenchmarkCreatePet is a lone caller, without the wait for the disk.
func BenchmarkCreatePet(b *testing.B) {
	d, err := Open(b.Context(), filepath.Join(b.TempDir(), "store.db"), Options{Serve: true, Tuning: Tuning{NoSync: true}})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
	defer cancel()
	for b.Loop() {
		if _, _, err := d.CreatePet(ctx, animalstore.NewPet{Name: "Rex", CategoryID: 1}, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPets reads a page of twenty.
func BenchmarkPets(b *testing.B) {
	d, err := Open(b.Context(), filepath.Join(b.TempDir(), "store.db"), Options{Serve: true, Tuning: Tuning{NoSync: true}})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	for range 1000 {
		if _, _, err := d.CreatePet(b.Context(), animalstore.NewPet{Name: "Rex the twenty-first", CategoryID: 1}, nil); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if _, err := d.Pets(b.Context(), db.PetQuery{Limit: 20}); err != nil {
			b.Fatal(err)
		}
	}
}
