//go:build unix

package postgres

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"animalstore/internal/db/postgres/pgtest"
	"animalstore/internal/testenv"
)

// useSecondVersion makes this program one that has a second version of the tables.
func useSecondVersion(t *testing.T) {
	t.Helper()
	files := fstest.MapFS{"migrations/00002_colors.sql": {Data: []byte("-- +goose Up\nALTER TABLE categories ADD COLUMN color text NOT NULL DEFAULT 'red';")}}
	names, err := fs.Glob(embedded, "migrations/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		data, err := embedded.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = &fstest.MapFile{Data: data}
	}
	t.Cleanup(func() { migrations = embedded })
	migrations = files
}

// TestMigrate_Slow: opening a database migrates the tables of the version before, and keeps
// their rows.
func TestMigrate_Slow(t *testing.T) {
	server := pgtest.Shared(t)
	url := server.NewDatabase(t, "")
	mustCreate(t, mustOpen(t, url, Options{Timeout: testenv.Deadline}), "Rex")
	t.Run("to a made-up version", func(t *testing.T) {
		useSecondVersion(t)
		if source, err := OpenSource(t.Context(), url, false); err == nil {
			source.Close()
			t.Error("OpenSource opened tables that have to be migrated")
		}
		d := mustOpen(t, url, Options{Timeout: testenv.Deadline})
		if have, known, err := Versions(t.Context(), url); have != 2 || known != 2 || err != nil {
			t.Errorf("Versions = %d, %d, %v, want 2 twice", have, known, err)
		}
		if pet, err := d.Pet(t.Context(), 1); err != nil || pet.Name != "Rex" {
			t.Errorf("got %+v, %v, want Rex", pet, err)
		}
		server.MustExec(t, pgtest.Name(url), "UPDATE categories SET color = 'blue'")
	})
	if d, err := Open(t.Context(), url, Options{}); err == nil {
		d.Close()
		t.Error("the first version opened the tables of the second")
	}
}
