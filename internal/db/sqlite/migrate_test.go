package sqlite

import (
	"path/filepath"
	"slices"
	"testing"

	"animalstore"
)

// useSecondVersion makes this program one that has a second version of the tables.
func useSecondVersion(t *testing.T) {
	t.Helper()
	first := schema.Migrations
	t.Cleanup(func() { schema.Migrations = first })
	schema.Migrations = append(slices.Clone(first), "ALTER TABLE categories ADD COLUMN color TEXT NOT NULL DEFAULT 'red'")
}

// TestMigrate: a server migrates the tables of the version before, and keeps their rows.
// Commands leave that to it, because a server of that version may be using the file.
func TestMigrate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	d := mustOpen(t, path, Options{Serve: true})
	if _, _, err := d.CreatePet(t.Context(), animalstore.NewPet{Name: "Rex", CategoryID: 7}, nil); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	t.Run("to a made-up version", func(t *testing.T) {
		useSecondVersion(t)
		wantRefused(t, path, Options{MustExist: true}, 0)
		if source, err := OpenSource(t.Context(), path, false); err == nil {
			source.Close()
			t.Error("OpenSource opened tables that have to be migrated")
		}
		d := mustOpen(t, path, Options{Serve: true})
		if have, known, err := Versions(path); have != 2 || known != 2 || err != nil {
			t.Errorf("Versions = %d, %d, %v, want 2 twice", have, known, err)
		}
		if pet, err := d.Pet(t.Context(), 1); err != nil || pet.Name != "Rex" {
			t.Errorf("got %+v, %v, want Rex", pet, err)
		}
		script(t, path, "UPDATE categories SET color = 'blue'")
	})
	wantRefused(t, path, Options{Serve: true}, 0)
}
