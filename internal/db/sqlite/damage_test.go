package sqlite

import (
	"path/filepath"
	"testing"

	"animalstore"
	"animalstore/internal/db"
)

// TestDamagedRow: a row that breaks the rules isn't served, and fails nothing else.
func TestDamagedRow(t *testing.T) {
	for name, sql := range map[string]string{
		"status":       "PRAGMA ignore_check_constraints = ON; UPDATE pets SET status = 7 WHERE id = 1",
		"name":         "UPDATE pets SET name = CAST(x'ff' AS TEXT) WHERE id = 1",
		"without name": "UPDATE pets SET name = '' WHERE id = 1",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "store.db")
			d := mustOpen(t, path, Options{Serve: true, Fatal: func(err error) { t.Errorf("the server stops: %v", err) }})
			for range 2 {
				if _, _, err := d.CreatePet(t.Context(), animalstore.NewPet{Name: "Rex", CategoryID: 1}, nil); err != nil {
					t.Fatal(err)
				}
			}
			script(t, path, sql)
			rename := func(p *animalstore.Pet, _ bool) error { p.Name = "Max"; return nil }
			if got, err := d.Pet(t.Context(), 1); err == nil {
				t.Errorf("got %+v, want an error", got)
			}
			if got, err := d.Pets(t.Context(), animalstore.PetQuery{}, db.Page{Limit: 10}); err == nil {
				t.Errorf("got %+v, want an error", got)
			}
			if got, err := d.UpdatePet(t.Context(), 1, rename); err == nil {
				t.Errorf("got %+v, want an error", got)
			}
			if got, err := d.UpdatePet(t.Context(), 2, rename); err != nil || got.Name != "Max" {
				t.Errorf("got %+v, %v for the other pet, want it renamed", got, err)
			}
		})
	}
}
